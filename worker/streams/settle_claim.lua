-- Ends a delivery and claims the next job.
-- KEYS 1 to 5, ARGV 1 to 9: what take.lua takes.
-- KEYS 6 to 11, ARGV 10 to 20: what settle.lua takes.
-- Returns what settle.lua does unless that is 'ok', and then two lists as
-- claim.lua does; the second is empty when there is no job.
local answer = settle({unpack(KEYS, 6)}, {unpack(ARGV, 10)})
if answer ~= 'ok' then return answer end
local sound, job = pcall(take) -- what is wrong with the next job is not held against this one
if not sound then
  fault(type(job) == 'table' and job.err or tostring(job))
  job = nil
end
return {faults, job or {}}
