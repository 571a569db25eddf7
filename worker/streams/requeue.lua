-- Makes a dead job due again with nothing counted.
-- KEYS: job, ready, dead
-- ARGV: id, prefix of host streams, nonce
-- Returns 'ok' or 'unknown'. The nonce makes a repeated call an 'ok'.
local id, hosts, nonce = unpack(ARGV)
local job = read(KEYS[1], 'state', 'only_host', 'dead_entry', 'requeue')
if job.requeue == nonce then return 'ok' end
if job.state ~= 'dead' then return 'unknown' end
local refused = make_ready(KEYS[1], stream_of(job.only_host, KEYS[2], hosts), id)
if refused then return refused end
redis.call('HSET', KEYS[1], 'attempts', 0, 'stalls', 0, 'placed', whole(now_ms()), 'requeue', nonce)
redis.call('HDEL', KEYS[1], 'reason', 'at', 'dead_entry', 'cancel', 'passed', 'not_host', 'not_until')
if job.dead_entry then redis.pcall('XDEL', KEYS[3], job.dead_entry) end
return 'ok'
