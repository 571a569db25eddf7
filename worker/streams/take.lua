-- How a job is claimed. A script makes its functions anew each time it is called,
-- which costs about as much as a command does; so there are few, and those that are
-- seldom needed are made inside another. scripts.go ends this text with claim.lua,
-- or with settle.lua and settle_claim.lua.
-- KEYS 1 to 5: ready, ready of this host, delayed, server, changed
-- ARGV 1 to 9: prefix of jobs, prefix of host streams, group, consumer, host,
--       nonce, lease in ms, '1' to look which server answers and for lost leases,
--       '1' when the answer to a claim with this nonce may have been lost
local ready, ready_here, delayed, server_key, changed_key = unpack(KEYS, 1, 5)
local jobs, hosts, group, consumer, host, nonce, lease, look, again = unpack(ARGV, 1, 9)
lease = tonumber(lease)
local faults = {} -- what is wrong with the stored state
local passed_over = {} -- by id: a job that only another host may take now
local changed = 0 -- since when (ms) it is this server that answers, 0 for ever
local left = 100 -- how many entries this claim may still read

-- Notes what is wrong; a state that is wrong in many places is not told whole.
local function fault(what)
  if #faults < 20 then faults[#faults + 1] = what end
end

-- Calls a command on a key of this queue; nil when that is refused, which is a
-- fault and not the end of the claim.
local function call(key, ...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err and string.find(answer.err, 'NOGROUP', 1, true) then
    -- A group that is gone, with its server's state, is made again from the first
    -- entry on, so that nothing that waits is skipped.
    if key == ready then
      if redis.pcall('HGET', server_key, 'group') == 'made' then
        fault(key .. ': its group was gone, perhaps with entries; a job that waits and never comes can be submitted again')
      end
      redis.pcall('HSET', server_key, 'group', 'made')
    end
    redis.pcall('XGROUP', 'CREATE', key, group, '0', 'MKSTREAM')
    answer = redis.pcall(...)
  end
  if type(answer) == 'table' and answer.err then
    fault(key .. ': ' .. answer.err)
    return nil
  end
  return answer
end

-- The id of the job that an entry is of; nil when it is not of one.
local function field_id(fields)
  if type(fields) ~= 'table' then return nil end
  for i = 1, #fields, 2 do
    if fields[i] == 'id' then return fields[i + 1] end
  end
end

-- What a claim needs of a job.
local function read_job(id)
  return read(jobs .. id, 'body', 'data', 'state', 'entry', 'token', 'claims', 'attempts', 'stalls', 'passed', 'placed',
    'not_host', 'not_until')
end

-- What claim.go makes a delivery of: id, body, data, attempts, stalls, passed,
-- token, stream, entry, '1' when the attempt that is due may have run before.
local function as_delivery(id, job, stream, entry)
  -- A server that was put in another one's place may not know that the job, which
  -- is older, was claimed before.
  local may_have_run = (tonumber(job.placed) or 0) < changed
  return {id, job.body, job.data or '', whole(count(job.attempts)), whole(count(job.stalls)), job.passed or '', job.token,
    stream, entry, may_have_run and '1' or '0'}
end

-- Gives the job of an entry that the group has just given to this consumer a new
-- token; nil when the entry comes to no delivery of this host. stalled says that
-- the entry is a lost lease.
local function deliver(stream, entry, fields, stalled)
  local id = field_id(fields)
  local job = id and read_job(id) or {}
  if not job.body or job.entry ~= entry then
    fault(stream .. ': entry ' .. entry .. ' belongs to no job, id ' .. string.sub(id or '', 1, 64))
    drop_entry(stream, group, entry)
    return nil
  end
  if job.state == 'running' and not stalled then
    return nil -- read again through a new group: its worker holds it, or a lease ends
  end
  -- This host handed it back, and another one is still to have its chance.
  if not stalled and job.not_host == host and now_ms() < (tonumber(job.not_until) or 0) then
    make_ready(jobs .. id, stream, id)
    drop_entry(stream, group, entry)
    passed_over[id] = true
    return nil
  end
  if stalled then job.stalls = whole(count(job.stalls) + 1) end
  -- A promoted replica can count a claim again: the nonce keeps the two apart.
  local claims = whole(count(job.claims) + 1)
  job.token = claims .. ':' .. nonce
  redis.call('HSET', jobs .. id, 'state', 'running', 'token', job.token, 'claims', claims, 'host', host,
    'stalls', count(job.stalls))
  if job.not_host then redis.call('HDEL', jobs .. id, 'not_host', 'not_until') end
  return as_delivery(id, job, stream, entry)
end

-- A delivery of the first entry that nobody has claimed.
local function next_entry(stream)
  while left > 0 do
    left = left - 1
    local answer = call(stream, 'XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', stream, '>')
    if not answer then return nil end
    local e = answer[1][2][1]
    local id = field_id(e[2])
    if id and passed_over[id] then -- all that is left here is not for this host
      make_ready(jobs .. id, stream, id)
      drop_entry(stream, group, e[1])
      return nil
    end
    local d = deliver(stream, e[1], e[2], false)
    if d then return d end
  end
end

-- What few claims have to do before they take the next entry of everybody's stream.
-- Returns a delivery if it comes upon one.
local function look_further()
  local since -- when (ms) the server began to answer without a gap
  -- A host without jobs of its own has no stream, and gets none by being looked at.
  local streams = redis.call('EXISTS', ready_here) > 0 and {ready_here, ready} or {ready}

  -- Looks which server answers, and notes it: one that was put in another one's
  -- place, or was away, may not know of the last claims and extensions.
  local function look_at_server()
    local now = now_ms()
    local server, foreign = read(server_key, 'run', 'since', 'seen')
    local seen = tonumber(server.seen)
    local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
    local other = server.run ~= run
    since = tonumber(server.since)
    if other or not since or not seen or now - seen > lease / 2 or since > now then since = now end
    if foreign then
      fault(server_key .. ': ' .. foreign.err)
      redis.call('DEL', server_key)
    end
    if other and server.run then redis.call('SET', changed_key, whole(now)) end
    -- A server out of memory keeps what it knew, and nobody is taken for lost.
    call(server_key, 'HSET', server_key, 'run', run, 'since', whole(since), 'seen', whole(now))
  end

  -- Makes the delayed jobs that have become due claimable. One that can't be is put
  -- off for a minute, so that it does not hold the others up.
  local function promote()
    local now = now_ms()
    local ids = call(delayed, 'ZRANGEBYSCORE', delayed, '-inf', whole(now), 'LIMIT', 0, 100)
    for _, id in ipairs(ids or {}) do
      local key = jobs .. id
      local job = read(key, 'state', 'only_host')
      local refused = job.state == 'delayed' and make_ready(key, stream_of(job.only_host, ready, hosts), id)
      if refused then
        fault(key .. ': ' .. refused.err)
        redis.pcall('ZADD', delayed, whole(now + 60000), id)
      else
        redis.call('ZREM', delayed, id)
      end
    end
  end

  -- The delivery that this claim came to before, when its answer was lost.
  local function repeated(stream)
    for _, p in ipairs(call(stream, 'XPENDING', stream, group, '-', '+', 1000, consumer) or {}) do
      local entries = redis.call('XRANGE', stream, p[1], p[1])
      local id = entries[1] and field_id(entries[1][2])
      local job = id and read_job(id) or {}
      if job.body and job.token and string.sub(job.token, -#nonce - 1) == ':' .. nonce then
        return as_delivery(id, job, stream, p[1])
      end
    end
  end

  -- Drops what this consumer holds of entries that were deleted: before Redis 7
  -- XAUTOCLAIM claims those too, as nil.
  local function drop_deleted(stream)
    for _, p in ipairs(call(stream, 'XPENDING', stream, group, '-', '+', 1000, consumer) or {}) do
      if #redis.call('XRANGE', stream, p[1], p[1]) == 0 then
        redis.call('XACK', stream, group, p[1])
        fault(stream .. ': entry ' .. p[1] .. ' was deleted while it was claimed')
      end
    end
  end

  -- A delivery of a lost lease: an entry that has not been extended for a lease.
  local function lost_lease(stream)
    local cursor = '0-0'
    repeat
      -- An empty answer with a cursor means: go on from there.
      local answer = call(stream, 'XAUTOCLAIM', stream, group, consumer, lease, cursor, 'COUNT', 1)
      if not answer then return nil end
      cursor = answer[1]
      for _, entry in ipairs(answer[3] or {}) do
        fault(stream .. ': entry ' .. entry .. ' was deleted while it was claimed')
      end
      local e = answer[2][1]
      if e then
        local d = deliver(stream, e[1], e[2], true)
        if d then return d end
      elseif e == false then
        drop_deleted(stream)
      end
    until cursor == '0-0'
  end

  -- Removes the consumers of processes that are gone. One that has pending entries
  -- stays, for they would be lost with it.
  local function drop_consumers(stream)
    if redis.call('EXISTS', stream) == 0 then return end
    for _, flat in ipairs(call(stream, 'XINFO', 'CONSUMERS', stream, group) or {}) do
      local c = {}
      for i = 1, #flat, 2 do c[flat[i]] = flat[i + 1] end
      if c.name ~= consumer and c.pending == 0 and c.idle > 10 * lease then
        redis.call('XGROUP', 'DELCONSUMER', stream, group, c.name)
      end
    end
  end

  if look == '1' then look_at_server() end
  changed = tonumber(call(changed_key, 'GET', changed_key)) or 0
  if again == '1' then
    for _, stream in ipairs(streams) do
      local d = repeated(stream)
      if d then return d end
    end
  end
  promote()
  if look == '1' then
    for _, stream in ipairs(streams) do drop_consumers(stream) end
    -- Workers can't extend while the server is away, nor does a promoted one know
    -- of the last claims: for one lease after that nobody is taken for lost.
    if now_ms() - since >= lease then
      for _, stream in ipairs(streams) do
        local d = lost_lease(stream)
        if d then return d end
      end
    end
  end
  if redis.pcall('XLEN', ready_here) ~= 0 then return next_entry(ready_here) end
end

-- Claims a job. Returns what as_delivery does, nil when there is none. Jobs of this
-- host alone come first.
local function take()
  if look == '1' or again == '1' or redis.call('EXISTS', changed_key, delayed, ready_here) > 0 then
    local d = look_further()
    if d then return d end
  end
  return next_entry(ready)
end
