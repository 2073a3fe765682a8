#!lua flags=allow-oom
-- Takes jobs by the rule, job by job, under one lease.
-- ARGV: token, worker, view ('*' or ',a,b,'), most jobs, most bytes of payload (0 = no limit), lease in ms.
-- Returns {start, end of the leases, id, record, id, record, …}.
--@include settings sched lines record batch ordered pick flush
local tok, worker, max, maxbytes, lease = ARGV[2], ARGV[3], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local bkey = P .. 'b:' .. tok
local again = header(tok)
if again then -- the reply was lost: the same batch
  local all, list, out = call('HGETALL', bkey), {}, {again.s, again.u}
  for k = 1, #all, 2 do
    if all[k] ~= '' then list[#list + 1] = {id = all[k], place = parse(all[k + 1]).place} end
  end
  table.sort(list, function(a, b) return a.place < b.place end)
  for _, e in ipairs(list) do two(out, e.id, call('GET', P .. 'msg:' .. e.id)) end
  return out
end
local v, toomany = view(ARGV[4])
if not v then return toomany end
openview(v, max)

local guard = conf().guard
local expiring = #call('ZRANGEBYSCORE', P .. 'expiry', '-inf', now, 'LIMIT', 0, 1) > 0
local taken, from, bytes, exact = {}, {}, 0, false
local function payload(e) return load(string.sub(e, 1, 26)).z or 0 end

-- fits reports whether one more job stays within the limit. Size classes bound the sum from above; only when that is not
-- enough the exact sizes are read.
local function fits(e)
  if maxbytes == 0 then return true end
  local most = 64 * 2 ^ (string.byte(e, 27) - 97)
  if not exact then
    if bytes + most <= maxbytes then
      bytes = bytes + most
      return true
    end
    exact, bytes = true, 0
    for _, old in ipairs(taken) do bytes = bytes + payload(old) end
  end
  local size = payload(e)
  if #taken > 0 and bytes + size > maxbytes then return false end
  bytes = bytes + size
  return true
end

-- expired drops a job whose time is over before it ever started.
local function expired(e)
  local id = string.sub(e, 1, 26)
  local at = call('ZSCORE', P .. 'expiry', id)
  if not at or now < tonumber(at) then return false end
  call('ZREM', P .. 'expiry', id)
  finish(id, load(id), 'E')
  return true
end

while #taken < max do
  local c = choose(guard)
  if not c then break end
  local l = c.l
  local want = 1
  if #taken == 0 and max > 1 and not expiring and single(c) then want = max end
  local popped = call('LPOP', l.key, want) or {}
  local n, stop = 0, false
  for k = 1, #popped do
    if expiring and expired(popped[k]) then l.len = l.len - 1
    elseif fits(popped[k]) then
      n = n + 1
      l.len = l.len - 1
      taken[#taken + 1] = popped[k]
      from[#taken] = l.t
    else
      for i = #popped, k, -1 do call('LPUSH', l.key, popped[i]) end
      stop = true
      break
    end
  end
  if n > 0 then charge(c, n, l.len) elseif l.len <= 0 then skip(c) end
  if stop or want > 1 then break end
end
flushview()

local n = #taken
if n == 0 then return {now, now} end
local u, msg, sub, list, keys = now + lease, P .. 'msg:', string.sub, {}, {}
for k = 1, n do
  local id = sub(taken[k], 1, 26)
  list[k], keys[k] = id, msg .. id
end
local records = call('MGET', unpack(keys))
local out, set, at, place, tenants, ordinal, o, t = {now, u}, {'', ''}, 2, 0, {}, {}, nil, nil
for k = 1, n do
  local id, record = list[k], records[k]
  if record then
    local flag = sub(taken[k], 28)
    if flag == 'x' then
      local j = load(id)
      if j.x and not j.st then call('ZREM', P .. 'expiry', id) end
      if j.us == 1 then freeunique(id, j) end
      flag = 's'
    end
    place = place + 1
    if from[k] ~= t then
      t = from[k]
      o = ordinal[t]
      if not o then
        o = #tenants + 1
        tenants[o], ordinal[t] = t, o
      end
    end
    set[at + 1], set[at + 2] = id, o == 1 and flag .. placename(place) or flag .. placename(place) .. ';' .. placename(o)
    out[at + 1], out[at + 2] = id, record
    at = at + 2
    if watched ~= false then touch(id) end
  end
end
set[2] = cmsgpack.pack({s = now, u = u, w = worker, n = call('HINCRBY', P .. 'count', 'batches', 1), l = lease, t = tenants, pad = string.rep('.', 64)})
call('HSET', bkey, unpack(set))
call('ZADD', P .. 'leases', u, tok)
due(u)
return out
