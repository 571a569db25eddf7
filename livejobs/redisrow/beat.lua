-- Publishes a host's row, on the server's clock.
-- KEYS: row, owner, hosts
-- ARGV: token, life of the row (ms), name, slots, used, version, jobs, jobsMore
-- Returns {'ok'}, or {'taken', at}: another token has the name, whose row was
-- last written at that instant ('' when there is no row).

-- Redis 6 would have its replicas run the script, on a clock of their own.
if redis.replicate_commands then redis.replicate_commands() end

local row, owner, hosts = unpack(KEYS)
local token, life, name, slots, used, version, jobs, more = unpack(ARGV)

-- An owner or a row of another type is nobody's: both are written over.
local holder = redis.pcall('GET', owner)
if type(holder) == 'string' and holder ~= token then
  local at = redis.pcall('HGET', row, 'at')
  return {'taken', type(at) == 'string' and at or ''}
end

local t = redis.call('TIME')
local at = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))

-- First, what a server out of memory refuses: then nothing was changed. An index
-- of another type is nobody's either, and the other hosts' beats fill it again.
local added = redis.pcall('ZADD', hosts, at, name)
if type(added) == 'table' and string.find(added.err, 'WRONGTYPE', 1, true) then
  redis.call('UNLINK', hosts)
  added = redis.pcall('ZADD', hosts, at, name)
end
if type(added) == 'table' then return added end

-- The whole row every time: one that had expired, or had lost a field, is whole
-- again, and never without its expiry.
redis.call('UNLINK', row)
redis.call('HSET', row, 'name', name, 'at', at, 'slots', slots, 'used', used,
  'version', version, 'jobs', jobs, 'jobsMore', more)
redis.call('PEXPIRE', row, life)
redis.call('SET', owner, token, 'PX', life)
return {'ok'}
