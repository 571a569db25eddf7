-- Adds a job.
-- KEYS: job, ended, ready, delayed
-- ARGV: id, body, data, delay in ms, only host or '', prefix of host streams, nonce
-- Returns 'ok' or 'duplicate'. The nonce makes a repeated submit of one call,
-- whose first answer was lost, an 'ok', also when the job has ended meanwhile.
-- A job that waits and that no list has any more, because a key was deleted or
-- evicted, goes back into its list as it is, which is an 'ok' too.
local id, body, data, delay, only_host, hosts, nonce = unpack(ARGV)
local job, foreign = read(KEYS[1], 'body', 'submit', 'state', 'entry', 'due', 'only_host')
if foreign then return foreign end
if job.body then
  if job.submit == nonce then return 'ok' end
  if job.state == 'waiting' then
    local stream, entry = stream_of(job.only_host, KEYS[3], hosts), job.entry or '0-0'
    local listed = redis.pcall('XRANGE', stream, entry, entry)
    if not listed.err and #listed == 0 then return make_ready(KEYS[1], stream, id) or 'ok' end
  elseif job.state == 'delayed' and not redis.pcall('ZSCORE', KEYS[4], id) then
    return make_delayed(KEYS[1], KEYS[4], id, tonumber(job.due) or 0) or 'ok'
  end
  return 'duplicate'
end
local answer, _, ended_nonce = read_ended(KEYS[2])
if answer and ended_nonce == nonce then return 'ok' end
local now = now_ms()
local refused
if tonumber(delay) > 0 then
  refused = make_delayed(KEYS[1], KEYS[4], id, now + tonumber(delay))
else
  refused = make_ready(KEYS[1], stream_of(only_host, KEYS[3], hosts), id)
end
if refused then return refused end
redis.call('HSET', KEYS[1], 'body', body, 'data', data, 'attempts', 0, 'stalls', 0, 'only_host', only_host, 'submit', nonce,
  'placed', whole(now))
if answer then redis.call('DEL', KEYS[2]) end
return 'ok'
