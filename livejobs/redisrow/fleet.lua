-- Reads the rows of a fleet, and forgets the hosts that are dead.
-- KEYS: hosts
-- ARGV: what a row's key begins with, age (ms) of the dead, most hosts to read,
--   most bytes of a name, most bytes of a field
-- Returns now (ms), how many hosts there are, and for each that was read, the
-- latest beat first: its name, its score, and either the row's seven fields or
-- one text that says what is wrong with it. A host without a row has neither.
-- Its rows are found on the way: their keys lie in the slot of KEYS.

-- Redis 6 would have its replicas run the script, on a clock of their own.
if redis.replicate_commands then redis.replicate_commands() end

local hosts = KEYS[1]
local rows, dead, most, name_most, field_most = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

-- A score far ahead was not given by this clock: it would never grow old.
-- The rows of both go too: one that does not expire is not a beat's. At most
-- 1000 each, so that no garbage holds the server up.
local function sweep(from, to)
  local gone = redis.pcall('ZRANGEBYSCORE', hosts, from, to, 'LIMIT', 0, 1000)
  if gone.err then return gone end
  for _, name in ipairs(gone) do
    if redis.call('ZREM', hosts, name) == 1 and #name <= name_most then redis.call('UNLINK', rows .. name) end
  end
end
local failed = sweep('-inf', string.format('(%.0f', now - dead))
if failed then return failed end
sweep(string.format('(%.0f', now + dead), '+inf')

local fields = {'name', 'at', 'slots', 'used', 'version', 'jobs', 'jobsMore'}
local function read(name)
  if #name > name_most then return 'its name is too long' end
  local row = redis.pcall('HMGET', rows .. name, unpack(fields))
  if row.err then return 'its row is not a hash' end
  local found = false
  for i, field in ipairs(fields) do
    if row[i] then found = true else row[i] = '' end
    if #row[i] > field_most then return field .. ' is longer than ' .. field_most .. ' bytes' end
  end
  return found and row or false
end

local answer = {string.format('%.0f', now), redis.call('ZCARD', hosts)}
local listed = redis.call('ZREVRANGE', hosts, 0, tonumber(most) - 1, 'WITHSCORES')
for i = 1, #listed, 2 do
  local name = listed[i]
  answer[#answer + 1] = {string.sub(name, 1, name_most), listed[i + 1], read(name)}
end
return answer
