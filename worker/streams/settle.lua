-- How a delivery ends. scripts.go ends this text with the call of settle, or with
-- settle_claim.lua.
-- keys 1 to 6: job, stream, ended, record, delayed, dead
-- args 1 to 11: id, token, group, entry, what, ms, word, record or '', record's
--       life in ms, history's life in ms, hosts that passed the job on
--   done:  word is the answer to a cancel that was requested
--   retry: ms until the job is due again
--   defer: ms until the job is due again; word is the host that must not take it
--          next, which holds for 30 s after that
--   dead:  word is the reason
-- Returns 'ok' or 'lost', or the error of a server that refused. A call that was
-- carried out before, and whose answer was lost, is 'ok' again.
local function settle(keys, args)
  local job_key, stream, ended_key, record_key, delayed, dead = unpack(keys)
  local id, token, group, entry, what, ms, word, record, record_life, history, passed = unpack(args)
  local job = read(job_key, 'token', 'settled', 'cancel', 'attempts', 'stalls', 'submit')
  local this = what .. ':' .. token
  if job.token ~= token then
    local _, settled = read_ended(ended_key)
    if job.settled == this or settled == this then return 'ok' end
    return 'lost'
  end
  local cancelled = job.cancel == 'requested'
  if what == 'retry' or what == 'dead' then job.attempts = whole(count(job.attempts) + 1) end

  if what == 'done' then
    keep_ended(job_key, ended_key, job, cancelled and word or '-', this, history)
  elseif what == 'dead' then
    local e = redis.pcall('XADD', dead, '*', 'id', id)
    if e.err then return e end
    redis.call('HSET', job_key, 'state', 'dead', 'attempts', job.attempts, 'reason', word, 'at', whole(now_ms()),
      'dead_entry', e, 'settled', this)
    if cancelled then redis.call('HSET', job_key, 'cancel', 'too-late') end
    redis.call('HDEL', job_key, 'token', 'entry', 'host')
  elseif cancelled then
    -- Nobody runs it any more: what waits and was cancelled is removed.
    keep_ended(job_key, ended_key, job, 'removed', this, history)
  else
    local due = now_ms() + tonumber(ms)
    local refused
    if tonumber(ms) > 0 then
      refused = make_delayed(job_key, delayed, id, due)
    else
      refused = make_ready(job_key, stream, id)
    end
    if refused then return refused end
    redis.call('HSET', job_key, 'attempts', count(job.attempts), 'placed', whole(now_ms()), 'settled', this)
    if what == 'defer' and word ~= '' then
      redis.call('HSET', job_key, 'passed', passed, 'not_host', word, 'not_until', whole(due + 30000))
    end
  end
  drop_entry(stream, group, entry)
  if record ~= '' then redis.call('SET', record_key, record, 'PX', record_life) end
  return 'ok'
end
