-- Renews a lease.
-- KEYS: job, stream, server
-- ARGV: token, group, consumer, entry
-- Returns 'lost', 'ok' or 'cancel'.
local token, group, consumer, entry = unpack(ARGV)
local job = read(KEYS[1], 'token', 'cancel')
if job.token ~= token then return 'lost' end
redis.pcall('HSET', KEYS[3], 'seen', whole(now_ms())) -- a live worker reached this server
-- JUSTID makes the idle time 0 without counting a delivery. FORCE brings the
-- entry back into a group that was made anew.
redis.pcall('XCLAIM', KEYS[2], group, consumer, 0, entry, 'FORCE', 'JUSTID')
if job.cancel == 'requested' then return 'cancel' end
return 'ok'
