-- Asks for a job to be stopped wherever it is.
-- KEYS: job, ended, delayed, ready
-- ARGV: id, group, prefix of host streams, history's life in ms
-- Returns 'removed', 'requested', 'stopped', 'too-late' or 'unknown'.
local id, group, hosts, history = unpack(ARGV)
local job = read(KEYS[1], 'state', 'entry', 'only_host', 'attempts', 'stalls', 'submit')
if not job.state then
  local answer = read_ended(KEYS[2])
  if not answer then return 'unknown' end
  if answer ~= '-' then return answer end
  return 'too-late'
elseif job.state == 'running' then
  redis.call('HSET', KEYS[1], 'cancel', 'requested')
  return 'requested'
elseif job.state == 'dead' then
  redis.call('HSET', KEYS[1], 'cancel', 'too-late')
  return 'too-late'
end
keep_ended(KEYS[1], KEYS[2], job, 'removed', '-', history)
if job.entry then drop_entry(stream_of(job.only_host, KEYS[4], hosts), group, job.entry) end
redis.pcall('ZREM', KEYS[3], id)
return 'removed'
