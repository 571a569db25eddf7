-- Removes a host's row on a clean stop, when the token still has the name.
-- KEYS: row, owner, hosts
-- ARGV: token, name
-- Returns 1 when it had.
local row, owner, hosts = unpack(KEYS)
local token, name = unpack(ARGV)
if redis.pcall('GET', owner) ~= token then return 0 end
redis.call('DEL', row, owner)
redis.pcall('ZREM', hosts, name)
return 1
