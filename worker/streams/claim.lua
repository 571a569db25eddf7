-- Claims a job.
-- KEYS and ARGV: what take.lua takes.
-- Returns two lists: the faults, and the delivery. Without one the second is what
-- to wait for: until_due, last_id of ready and of ready of this host.
local d = take()
if d then return {faults, d} end

-- The last entry of a stream: a worker without a job waits for one after it.
local function last_id(stream)
  local e = redis.pcall('XREVRANGE', stream, '+', '-', 'COUNT', 1)
  return e[1] and e[1][1] or '0-0'
end

-- How long (ms) it is until another claim may find a job; -1: until there is a
-- new entry.
local function until_due()
  if left == 0 then return 0 end
  local first = redis.pcall('ZRANGE', delayed, 0, 0, 'WITHSCORES')
  return first[2] and math.max(tonumber(first[2]) - now_ms(), 0) or -1
end

return {faults, {whole(until_due()), last_id(ready), last_id(ready_here)}}
