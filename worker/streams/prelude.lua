-- What the scripts share. All of them run on the server's clock. A server out of
-- memory can refuse the first change of a script only, and a key of another type
-- is met first, so that a refusal changes nothing. A job's end is never refused:
-- it begins by making room.

-- Redis 6 would have its replicas run the script, on a clock of their own.
if redis.replicate_commands then redis.replicate_commands() end

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- A number as Redis takes it: whole, without an exponent.
local function whole(n) return string.format('%.0f', n) end

-- A field that only scripts count; 0 when it holds anything else.
local function count(text)
  if text and #text <= 9 and string.find(text, '^%d+$') then return tonumber(text) end
  return 0
end

-- The named fields of a hash as a table. For a key of another type it is empty,
-- and the error is the second result.
local function read(key, ...)
  local row, values = {}, redis.pcall('HMGET', key, ...)
  if values.err then return row, values end
  for i, name in ipairs({...}) do row[name] = values[i] or nil end
  return row
end

-- A job's stream: its host's, else everybody's.
local function stream_of(only_host, ready, hosts)
  if (only_host or '') ~= '' then return hosts .. only_host end
  return ready
end

-- Makes a job claimable at the end of its stream. Returns the error of a server
-- that refused; then nothing was changed.
local function make_ready(job_key, stream, id)
  local entry = redis.pcall('XADD', stream, '*', 'id', id)
  if entry.err then return entry end
  redis.call('HSET', job_key, 'state', 'waiting', 'entry', entry)
  redis.call('HDEL', job_key, 'due', 'token', 'host')
end

-- Makes a job claimable from an instant on. Returns as make_ready does.
local function make_delayed(job_key, delayed, id, due)
  local added = redis.pcall('ZADD', delayed, whole(due), id)
  if type(added) == 'table' then return added end
  redis.call('HSET', job_key, 'state', 'delayed', 'due', whole(due))
  redis.call('HDEL', job_key, 'entry', 'token', 'host')
end

-- Takes an entry off its stream and off the pending list.
local function drop_entry(stream, group, entry)
  redis.pcall('XACK', stream, group, entry)
  redis.pcall('XDEL', stream, entry)
end

-- How a job ended, from the text that keep_ended left: the answer to a cancel or
-- '-', what settled it or '-', the nonce of its submit; nil when it is not known.
local function read_ended(ended_key)
  local text = redis.pcall('GET', ended_key)
  if type(text) ~= 'string' then return nil end
  return string.match(text, '^(%S+) (%S+) %d+ %d+ (%S*)$')
end

-- Keeps how a job ended, for a while, and forgets the job. Of it attempts, stalls
-- and submit must have been read.
local function keep_ended(job_key, ended_key, job, answer, settled, history)
  redis.call('DEL', job_key)
  redis.call('SET', ended_key,
    table.concat({answer, settled, count(job.attempts), count(job.stalls), job.submit or ''}, ' '), 'PX', history)
end
