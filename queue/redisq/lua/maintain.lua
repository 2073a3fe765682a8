#!lua flags=allow-oom
-- Does what time makes due, a bounded amount per call: expire, promote, reap, retain, in this order.
-- ARGV: most jobs per step, 1 when the store had been away, run id of the server or '' (a new one means it was away too).
-- Returns {promoted, reaped, expired, retained, 1 when there is more, those of the retained that were over a count}.
--@include settings sched lines views aside record batch
local most, gap, run = tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]
if run ~= '' and call('HGET', P .. 'count', 'run') ~= run then
  gap = gap or call('HEXISTS', P .. 'count', 'run') == 1
  call('HSET', P .. 'count', 'run', run)
end
local promoted, reaped, expired, retained, more = 0, 0, 0, 0, 0
local function over(key, at)
  local list = call('ZRANGEBYSCORE', P .. key, '-inf', at, 'LIMIT', 0, most)
  if #list == most then more = 1 end
  return list
end

-- After a gap nobody could renew a lease: each batch gets its lease once more, and if its holder does not come back in that
-- time, the jobs were interrupted, not crashed.
if gap then
  for _, tok in ipairs(call('ZRANGE', P .. 'leases', 0, -1)) do
    local h = header(tok)
    if h and not h.g then
      h.g, h.u, h.m = 1, math.max(h.u, now + h.l), nil
      local all = call('HGETALL', P .. 'b:' .. tok)
      for k = 1, #all, 2 do
        if all[k] ~= '' then
          local r = parse(all[k + 1])
          if r.u then
            r.u = nil
            call('HSET', P .. 'b:' .. tok, all[k], value(r))
          end
        end
      end
      setheader(tok, h)
      call('ZADD', P .. 'leases', h.u, tok)
    end
  end
end

for _, id in ipairs(over('expiry', now)) do
  local j = load(id)
  if j and not j.err then
    dropwaiting(id, j)
    finish(id, j, 'E')
    expired = expired + 1
  end
  call('ZREM', P .. 'expiry', id)
end

for _, id in ipairs(over('delayed', now)) do
  local j = load(id)
  if j and not j.err then
    unschedule(id, j)
    totail(id, j)
    promoted = promoted + 1
  else call('ZREM', P .. 'delayed', id) end
end

-- reap looks at each job of the batches in which a lease has ended.
local front = {}
local function reap(tok)
  local h, key = header(tok), P .. 'b:' .. tok
  if not h then return call('ZREM', P .. 'leases', tok) end
  local all, ended, first = call('HGETALL', key), {}, math.huge
  for k = 1, #all, 2 do
    if all[k] ~= '' then
      local r = parse(all[k + 1])
      r.id, r.u = all[k], r.u or h.u
      if r.u <= now then ended[#ended + 1] = r else first = math.min(first, r.u) end
    end
  end
  table.sort(ended, function(a, b) return a.place < b.place end)
  for _, r in ipairs(ended) do
    local s, f = settle(r.id, h, r, h.g and 'release' or 'crash', {d = r.u - h.s})
    if type(s) == 'string' then
      call('HDEL', key, r.id)
      front[#front + 1] = f
      reaped = reaped + 1
    end
  end
  if first < math.huge then call('ZADD', P .. 'leases', first, tok) end
  close(tok)
end
for _, tok in ipairs(over('leases', now)) do
  if reaped >= most then
    more = 1
    break
  end
  reap(tok)
end
tofront(front)

local c = conf()
local function retain(s, id)
  local j = load(id)
  if not j or j.err then
    call('ZREM', P .. 'ended:' .. s, id)
    return 0
  end
  unfile(id, j)
  erase(id, j)
  return 1
end
for _, s in ipairs({'S', 'C', 'E', 'D'}) do
  local age = s == 'D' and c.dead or c.done
  if age >= 0 then
    for _, id in ipairs(over('ended:' .. s, now - age)) do
      retained = retained + retain(s, id)
    end
  end
end
local evicted = 0
local function evict(states, bound)
  if bound == 0 then return end
  local n = -bound
  for _, s in ipairs(states) do n = n + call('ZCARD', P .. 'ended:' .. s) end
  if n > most then n, more = most, 1 end
  for _ = 1, n do
    local first
    for _, s in ipairs(states) do
      local z = call('ZRANGE', P .. 'ended:' .. s, 0, 0, 'WITHSCORES')
      if z[1] and (not first or tonumber(z[2]) < first.at) then first = {s = s, id = z[1], at = tonumber(z[2])} end
    end
    if not first then return end
    evicted = evicted + retain(first.s, first.id)
  end
end
evict({'S', 'C', 'E'}, c.most)
evict({'D'}, c.mostdead)
retained = retained + evicted
for _, v in ipairs(call('ZRANGEBYSCORE', P .. 'viewuse', '-inf', now - 3600000)) do dropview(v) end
wake()
return {promoted, reaped, expired, retained, more, evicted}
