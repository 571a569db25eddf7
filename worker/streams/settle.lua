-- Ends a delivery.
-- KEYS: job, stream, ended, record, delayed, dead
-- ARGV: id, token, group, entry, what, ms, word, record or '', record's life in
--       ms, history's life in ms, hosts that passed the job on
--   done:  word is the answer to a cancel that was requested
--   retry: ms until the job is due again
--   defer: ms until the job is due again; word is the host that must not take it
--          next, which holds for 30 s after that
--   dead:  word is the reason
-- Returns 'ok' or 'lost'. A call that was carried out before, and whose answer
-- was lost, is 'ok' again.
local id, token, group, entry, what, ms, word, record, record_life, history, passed = unpack(ARGV)
local job = read(KEYS[1], 'token', 'settled', 'cancel', 'attempts', 'stalls')
local this = what .. ':' .. token
if job.token ~= token then
  if job.settled == this or read(KEYS[3], 'settled').settled == this then return 'ok' end
  return 'lost'
end
local now = now_ms()
local cancelled = job.cancel == 'requested'
if what == 'retry' or what == 'dead' then job.attempts = whole(count(job.attempts) + 1) end

if what == 'done' then
  keep_ended(KEYS[1], KEYS[3], job, cancelled and word or '', this, history)
elseif what == 'dead' then
  local e = redis.pcall('XADD', KEYS[6], '*', 'id', id)
  if e.err then return e end
  redis.call('HSET', KEYS[1], 'state', 'dead', 'attempts', job.attempts, 'reason', word, 'at', whole(now),
    'dead_entry', e, 'settled', this)
  if cancelled then redis.call('HSET', KEYS[1], 'cancel', 'too-late') end
  redis.call('HDEL', KEYS[1], 'token', 'entry', 'host')
elseif cancelled then
  -- Nobody runs it any more: what waits and was cancelled is removed.
  keep_ended(KEYS[1], KEYS[3], job, 'removed', this, history)
else
  local refused
  if tonumber(ms) > 0 then
    refused = make_delayed(KEYS[1], KEYS[5], id, now + tonumber(ms))
  else
    refused = make_ready(KEYS[1], KEYS[2], id)
  end
  if refused then return refused end
  redis.call('HSET', KEYS[1], 'attempts', count(job.attempts), 'placed', whole(now), 'settled', this)
  if what == 'defer' and word ~= '' then
    redis.call('HSET', KEYS[1], 'passed', passed, 'not_host', word, 'not_until', whole(now + tonumber(ms) + 30000))
  end
end
drop_entry(KEYS[2], group, entry)
if record ~= '' then redis.call('SET', KEYS[4], record, 'PX', record_life) end
return 'ok'
