-- Reads the rows of a fleet, and forgets the hosts that are dead.
-- KEYS: hosts
-- ARGV: what a row's key begins with, age (ms) of the dead, most hosts to read,
--   most bytes of a name, of a field, of the answer
-- Returns now (ms), how many hosts there are, and for each that was read, the
-- latest beat first: its name, its score, and either the row's seven fields or
-- one text that says what is wrong with it. A host without a row has neither.
-- The rows are found on the way: their keys lie in the slot of KEYS. What is
-- forgotten is forgotten by pcall, so that a replica, which takes no writes, can
-- be read as well.

-- Redis 6 would have its replicas run the script, on a clock of their own.
if redis.replicate_commands then redis.replicate_commands() end

local hosts, rows = KEYS[1], ARGV[1]
local dead, most, name_most, field_most, answer_most =
  tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function whole(n) return string.format('%.0f', n) end

if not ({zset = 1, none = 1})[redis.call('TYPE', hosts).ok] then
  redis.pcall('UNLINK', hosts)
  return {whole(now), 0, {hosts, '0', 'the index of hosts was not a sorted set: it is removed, and the next beats fill it again'}}
end

-- The rows of the dead go too: one that has not expired by then is not a beat's.
-- At most 1000 at a time, so that no garbage holds the server up.
local function sweep(from, to)
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', hosts, from, to, 'LIMIT', 0, 1000)) do
    if redis.pcall('ZREM', hosts, name) == 1 and #name <= name_most then redis.call('UNLINK', rows .. name) end
  end
end
sweep('-inf', '(' .. whole(now - dead))
-- A score far ahead was not given by this clock: it would never grow old.
sweep('(' .. whole(now + dead), '+inf')

-- Each field's length is asked before the field, which may be of any.
local fields = {'name', 'at', 'slots', 'used', 'version', 'jobs', 'jobsMore'}
local bytes = 0
local function read(name)
  if #name > name_most then return 'its name is too long' end
  local key, found = rows .. name, false
  for _, field in ipairs(fields) do
    local length = redis.pcall('HSTRLEN', key, field)
    if type(length) == 'table' then return 'its row is not a hash' end
    if length > field_most then return 'its ' .. field .. ' is longer than ' .. field_most .. ' bytes' end
    bytes, found = bytes + length, found or length > 0
  end
  if not found then return false end
  local row = redis.call('HMGET', key, unpack(fields))
  for i = 1, #fields do row[i] = row[i] or '' end
  return row
end

local answer = {whole(now), redis.call('ZCARD', hosts)}
local listed = redis.call('ZREVRANGE', hosts, 0, most - 1, 'WITHSCORES')
for i = 1, #listed, 2 do
  if bytes > answer_most then break end
  local name = listed[i]
  answer[#answer + 1] = {string.sub(name, 1, name_most), listed[i + 1], read(name)}
end
return answer
