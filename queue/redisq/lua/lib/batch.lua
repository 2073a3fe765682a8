--@include reserved
-- find returns token and value of a running job, nil when it does not run.
local function find(id)
  for _, tok in ipairs(call('ZRANGE', P .. 'leases', 0, -1)) do
    local v = call('HGET', P .. 'b:' .. tok, id)
    if v then return tok, v end
  end
end

local function fault(i)
  if i.ek then return {k = i.ek, m = i.em, y = i.ey} end
end

local outcomes = {ack = 'S', nack = 'F', dead = 'F', defer = 'D', yield = 'D', release = 'I', crash = 'C'}
local ranout = {k = 'crash', m = 'the lease ran out: its host died or lost the store', y = 1}

-- settle ends one reservation whose value has been taken out of its batch. i is what the host measured: d(uration ms), f(uel), p(eak),
-- hr hv (handler), ek em ey (error), dl (delay ms), rs (result), measured (called with the job, its band and d). It returns the letter of the state after it, and whether the
-- job goes to the front: that is left to tofront.
local function settle(id, h, r, verb, i)
  local j = load(id)
  if not j then return 'L' end
  if j.err then return j end
  freed(j.t, j.q, j.k)
  if i.measured then i.measured(j, band[id], i.d) end
  local a, run = (j.a or 0) + 1, j.r or 1
  local note = {r = run, a = a, o = outcomes[verb], s = h.s, d = i.d, f = i.f, p = i.p, w = h.w, hr = i.hr, hv = i.hv}
  local cancelled = r.c and verb ~= 'ack' and verb ~= 'dead'
  local err = fault(i)
  j.st, j.a = h.s, a
  if verb == 'defer' or verb == 'yield' then j.a, err = a - 1, nil
  elseif verb == 'release' then j.a, j.n, err = a - 1, (j.n or 0) + 1, nil
  elseif verb == 'crash' then j.a, j.c, err = a - 1, (j.c or 0) + 1, err or ranout
  elseif verb == 'ack' then err = nil end
  note.e = err
  if cancelled then note.o = 'X' elseif err then j.e = err end
  local list = j.at or {}
  list[#list + 1] = note
  if #list > 100 then table.remove(list, 1) end
  j.at = list
  if i.hr or i.hv then j.h = {r = i.hr, v = i.hv} end
  if cancelled then finish(id, j, 'C') return 'C' end
  if verb == 'ack' then
    if i.rs and conf().done ~= 0 then
      call('SET', P .. 'result:' .. id, i.rs)
      j.rl = #i.rs
    end
    finish(id, j, 'S')
    return 'S'
  end
  if verb == 'dead' or verb == 'nack' and j.a >= math.max(j.m or 0, 1) then finish(id, j, 'D') return 'D' end
  if verb == 'nack' or verb == 'defer' then
    if (i.dl or 0) <= 0 then totail(id, j) return 'R' end
    schedule(id, j, verb == 'nack' and 'r' or 'f', now + i.dl)
    return 'W'
  end
  if verb == 'yield' then totail(id, j) return 'R' end
  if verb == 'crash' and j.c >= conf().crashes then
    j.e = {k = 'crash', m = string.format('crashed worker %d %s', j.c, j.c == 1 and 'time' or 'times')}
    if err.m and err.m ~= '' then j.e.m = j.e.m .. '; last: ' .. err.m end
    finish(id, j, 'D')
    return 'D'
  end
  j.fk = not j.k and call('EXISTS', P .. 'place:' .. tq(j.t, j.q)) == 1 and 1 or nil
  save(id, j)
  return 'R', {id = id, n = h.n, place = r.place, t = j.t, q = j.q, e = entry(id, j)}
end

-- tofront makes jobs ready before all others of their lines, as a block in the order in which they had been reserved.
local function tofront(block)
  table.sort(block, function(x, y)
    if x.n ~= y.n then return x.n > y.n end
    return x.place > y.place
  end)
  local lines, order = {}, {}
  for _, f in ipairs(block) do
    local k = f.t .. '/' .. f.q .. ':' .. band[f.id]
    if not lines[k] then
      lines[k] = {f = f, entries = {}}
      order[#order + 1] = k
    end
    local l = lines[k].entries
    l[#l + 1] = f.e
  end
  for _, k in ipairs(order) do
    local l = lines[k]
    fronts(l.f.t, l.f.q, l.entries)
    put('LPUSH', l.f.t, l.f.q, band[l.f.id], l.entries)
  end
  for _, f in ipairs(block) do touch(f.id) end
end
