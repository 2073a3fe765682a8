-- What a reservation takes.
local taken, from, counted = {}, {}, {}              -- entries, their tenants, their queues where what runs is counted
local ofview, max, maxbytes, bytes, exact           -- bounds, and payload bytes taken
local limit, expiring, aside, asidemost = limited(), false, 0, 0

local function opentake(v, n, size, steps)
  ofview, max, maxbytes, bytes, exact, asidemost = v, n, size, 0, false, steps
  expiring = #call('ZRANGEBYSCORE', P .. 'expiry', '-inf', now, 'LIMIT', 0, 1) > 0
  openrates()
  openview(v, n)
end

local function payload(e) return load(string.sub(e, 1, 26)).z or 0 end

-- fits reports whether one more job stays within the limit. Size classes bound the sum from above; only when that is not
-- enough the exact sizes are read.
local function fits(e)
  if maxbytes == 0 then return true end
  local top = 64 * 2 ^ (string.byte(e, 27) - 97)
  if not exact then
    if bytes + top <= maxbytes then
      bytes = bytes + top
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

-- expired drops a job whose time is over before it ever started. It returns nil for another, else a table with the slots of its key
-- as back when it had come back: then the next one may.
local function expired(e)
  local id = string.sub(e, 1, 26)
  local at = call('ZSCORE', P .. 'expiry', id)
  if not at or now < tonumber(at) then return nil end
  call('ZREM', P .. 'expiry', id)
  local j, out = load(id), {}
  if string.byte(e, 28) == 107 and unplace(j.t, j.q, id) and j.k then
    out.back = slot(j.t, j.q, j.k)
    out.back.back = out.back.back - 1
  end
  finish(id, j, 'E')
  return out
end

-- keyed returns the slots of a job's concurrency key; nil when it has none.
local function keyed(l, e)
  if string.byte(e, 28) ~= 107 then return nil end
  local j = load(string.sub(e, 1, 26))
  return j and j.k and slot(l.t, l.q, j.k)
end

-- start takes a job, whose key has the slots k; s are its queue's settings where there are limits.
local function start(l, s, e, k)
  if string.byte(e, 28) == 107 and unplace(l.t, l.q, string.sub(e, 1, 26)) and k then k.back = k.back - 1 end
  if k then
    k.run = k.run + 1
    keep(k)
  end
  local n = #taken + 1
  taken[n], from[n], counted[n] = e, l.t, s and (s.m or tenantcap(l.t) > 0) and l.q
end

-- most is how many jobs may be popped from a line before somebody else may be next.
local function most(c, s)
  if #taken > 0 or max == 1 or expiring or s and s.r or not single(c) then return 1 end
  return s and math.min(max, room(c.l.t, c.l.q, s)) or max
end

-- reopen writes what has changed, lets those leave who have reached a limit, and begins anew.
local function reopen(l, s, queueout, tenantout)
  flushview()
  if queueout then hold(l.t, l.q, s) end
  if tenantout then holdtenant(l.t) end
  openview(ofview, max - #taken)
end

-- comeback lets another job of a key come back, in place of one of the line l that was dropped, and begins anew.
local function comeback(l, k)
  flushview()
  bringback(k)
  if call('EXISTS', l.key) == 0 then emptied(l.t, l.q, l.b) end
  openview(ofview, max - #taken)
end
