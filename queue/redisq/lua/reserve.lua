#!lua flags=allow-oom
-- Takes jobs by the rule, job by job, under one lease.
-- ARGV: token, worker, view ('*' or ',a,b,'), most jobs, most bytes of payload (0 = no limit), lease in ms, most
-- jobs that step aside.
-- Returns {start, end of the leases, id, record, id, record, …}; without a job {start, start}.
--@include settings sched lines views aside record batch ordered pick flush take
local tok, worker, lease = ARGV[2], ARGV[3], tonumber(ARGV[7])
local bkey = P .. 'b:' .. tok
do
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
end
local v, toomany = view(ARGV[4])
if not v then return toomany end
local guard = conf().guard
-- price is what each job of a queue is charged in this batch, where time is charged: see lib/cost.lua.
local prices = unit > 0 and {}
local function price(t, q)
  local k = t .. '/' .. q
  if prices[k] then return prices[k] end
  local sum = tonumber(call('HGET', P .. 'cost', k) or 0)
  prices[k] = math.min(math.max(sum == 0 and unit or math.floor(sum / 8), 1), 1073741824)
  return prices[k]
end
opentake(v, tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[8]))

while #taken < max do
  local c = choose(guard)
  if not c then break end
  local l, s = c.l, limit and settings(c.l.t, c.l.q)
  if limit and (held(l.t, l.q, s) or tenantfull(l.t)) then -- by a count that the audit will put right
    call('SADD', P .. 'bands:' .. tq(l.t, l.q), l.b)
    reopen(l, s, held(l.t, l.q, s), tenantfull(l.t))
  else
    local want = most(c, s)
    local popped = call('LPOP', l.key, want) or {}
    local n, stop, back = 0, false, nil
    for k = 1, #popped do
      local e = popped[k]
      local dropped, slots = expiring and expired(e), nil
      if not dropped then slots = keyed(l, e) end
      local wait = slots and slots.run >= settings(l.t, l.q).k
      if dropped or wait and aside < asidemost or not wait and fits(e) then l.len = l.len - 1
      else
        for i = #popped, k, -1 do call('LPUSH', l.key, popped[i]) end
        stop = true
        break
      end
      if dropped then back = dropped.back
      elseif wait then
        aside = aside + 1
        stepaside(slots, l.b, e)
      else
        n = n + 1
        start(l, s, e, slots)
      end
    end
    local queueout, tenantout
    if back then comeback(l, back)
    else
      if n > 0 then charge(c, n, l.len, prices and price(l.t, l.q) or 1) elseif l.len <= 0 then skip(c) end
      if limit and n > 0 then queueout, tenantout = started(l.t, l.q, s, n) end
      if queueout or tenantout then reopen(l, s, queueout, tenantout) end
    end
    if stop or want > 1 and l.len <= 0 then break end
  end
end
flushview()

local n = #taken
if n == 0 then
  wake()
  return {now, now}
end
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
    local flag = sub(taken[k], 28, 28)
    if flag == 'x' or flag == 'k' then
      local j = load(id)
      if j.x and not j.st then call('ZREM', P .. 'expiry', id) end
      if j.us == 1 then freeunique(id, j) end
      flag = 's'
    end
    if counted[k] or prices then flag = 's' end
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
  elseif counted[k] then freed(from[k], counted[k]) -- its record is gone
  end
end
wake()
set[2] = cmsgpack.pack({s = now, u = u, w = worker, n = call('HINCRBY', P .. 'count', 'batches', 1), l = lease, t = tenants, c = prices and {v = v, e = prices} or nil, pad = string.rep('.', 64)})
call('HSET', bkey, unpack(set))
call('ZADD', P .. 'leases', u, tok)
due(u)
return out
