-- eachrunning calls f with token, id, value and record of every job that runs and can be read.
local function eachrunning(f)
  for _, tok in ipairs(call('ZRANGE', P .. 'leases', 0, -1)) do
    local all = call('HGETALL', P .. 'b:' .. tok)
    for k = 1, #all, 2 do
      local j = all[k] ~= '' and load(all[k])
      if j and not j.err then f(tok, all[k], all[k + 1], j) end
    end
  end
end

-- countrunning returns what runs of queues and tenants with a cap, and of concurrency keys, by the fields of running and by
-- '<tenant>/<queue>:<key>'; see is called for each job counted.
local function countrunning(see)
  local n, keys = {}, {}
  eachrunning(function(tok, id, v, j)
    local queue, tenant = 'q:' .. j.t .. '/' .. j.q, 't:' .. j.t
    local capped = settings(j.t, j.q).m
    if capped then n[queue] = (n[queue] or 0) + 1 end
    if tenantcap(j.t) > 0 then n[tenant] = (n[tenant] or 0) + 1 end
    if j.k then
      local k = j.t .. '/' .. j.q .. ':' .. j.k
      keys[k] = (keys[k] or 0) + 1
    end
    if see and (capped or tenantcap(j.t) > 0) then see(tok, id, v) end
  end)
  return n, keys
end

-- recount counts anew, after caps changed. Who is counted needs its record when it ends.
local function recount()
  local n = countrunning(function(tok, id, v)
    local r = parse(v)
    if r.flag == 'p' then
      r.flag = 's'
      call('HSET', P .. 'b:' .. tok, id, value(r))
    end
  end)
  call('DEL', P .. 'running')
  counts = {}
  for field, k in pairs(n) do count(field, k) end
end

-- resync lets everybody join or leave who does so by the settings and counts as they are now.
local function resync(t)
  local function keys(q)
    for _, key in ipairs(call('HKEYS', P .. 'slots:' .. tq(t, q))) do bringback(slot(t, q, key)) end
  end
  for _, q in ipairs(call('SMEMBERS', P .. 'asides:' .. t)) do keys(q) end
  linesof(t, refresh)
  if tenantfull(t) then holdtenant(t) else freetenant(t) end
end

-- dropbucket forgets the bucket of a rate that is not in force any more.
local function dropbucket(k)
  local t, q = string.match(k, '^(.*)/(.*)$')
  local v = call('HGET', P .. 'bucket', k)
  if not v then return end
  local s = settings(t, q)
  local _, _, r, rp = struct.unpack('>dddd', v)
  if r == s.r and rp == s.rp then return end
  call('HDEL', P .. 'bucket', k)
  call('ZREM', P .. 'park', k)
  buckets[k] = nil
end
