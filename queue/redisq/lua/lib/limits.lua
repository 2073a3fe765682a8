-- Caps and rates (RULES.md, Limits). What runs is counted where a cap is, in the script that adds a job to a live batch or takes
-- it out:
--   running    HASH 'q:<tenant>/<queue>', 't:<tenant>' → jobs that run
--   bucket     HASH <tenant>/<queue> → base, n, count, per (doubles): the token bucket of a rate, full at base + n·per/count
--   park       ZSET <tenant>/<queue> → from when its rate allows one more job
--   bands:<tq> SET of the bands of a queue with a limit in which a job can be taken
local counts = {}
local function running(field)
  if not counts[field] then counts[field] = tonumber(call('HGET', P .. 'running', field) or 0) end
  return counts[field]
end
local function count(field, by)
  local n = call('HINCRBY', P .. 'running', field, by)
  if n <= 0 then
    call('HDEL', P .. 'running', field)
    n = 0
  end
  counts[field] = n
end

local function queuefull(t, q, s) return s.m and running('q:' .. t .. '/' .. q) >= s.m end
local function tenantfull(t)
  local cap = tenantcap(t)
  return cap > 0 and running('t:' .. t) >= cap
end

local slack = 100 -- queue.RateSlack in ms
local buckets = {}
local function bucket(t, q)
  local k = t .. '/' .. q
  local b = buckets[k]
  if not b then
    local v = call('HGET', P .. 'bucket', k)
    b = {base = 0, n = 0}
    if v then b.base, b.n = struct.unpack('>dd', v) end
    buckets[k] = b
  end
  return b
end

-- ratefrom is from when a rate allows one more job, in whole ms; the arithmetic is that of fair.Bucket.
local function ratefrom(t, q, s)
  local b = bucket(t, q)
  local x = b.n * s.rp + s.r - 1
  return b.base + (x - x % s.r) / s.r - slack
end

-- chargerate counts one reservation and returns from when the next is allowed.
local function chargerate(t, q, s)
  local b = bucket(t, q)
  local elapsed = now - b.base
  if elapsed >= s.rp or elapsed >= 0 and b.n * s.rp <= elapsed * s.r then b.base, b.n = now, 0 end
  b.n = b.n + 1
  if b.n >= s.r then b.base, b.n = b.base + s.rp, b.n - s.r end
  call('HSET', P .. 'bucket', t .. '/' .. q, struct.pack('>dddd', b.base, b.n, s.r, s.rp))
  return ratefrom(t, q, s)
end

-- held says whether a queue does not compete, whatever its jobs. (That of a full tenant does, among the tenant's.)
local function held(t, q, s)
  return s.x == 1 or queuefull(t, q, s) or s.r and ratefrom(t, q, s) > now or false
end

-- room is how many more jobs of a queue may be started now.
local function room(t, q, s)
  local n = math.huge
  if s.m then n = s.m - running('q:' .. t .. '/' .. q) end
  local cap = tenantcap(t)
  if cap > 0 then n = math.min(n, cap - running('t:' .. t)) end
  if s.r then
    local b = bucket(t, q)
    n = math.min(n, math.floor((now + slack - math.max(now, b.base + b.n * s.rp / s.r)) * s.r / s.rp) + 1)
  end
  return n
end

-- started counts n reservations of a queue, one at a time where it has a rate. It returns whether the queue, and whether the tenant,
-- is held back now.
local function started(t, q, s, n)
  local out = false
  if s.m then
    count('q:' .. t .. '/' .. q, n)
    out = queuefull(t, q, s)
  end
  if s.r and chargerate(t, q, s) > now then out = true end
  if tenantcap(t) > 0 then count('t:' .. t, n) end
  return out, tenantfull(t)
end

-- nextrate is when a rate lets a queue with jobs into a view (its names, nil for all); nil for never, as things stand. Behind a
-- thousand others that are not of the view the answer is the time of the last of them: early, which costs a look.
local function nextrate(names)
  if not limited() then return nil end
  local list = call('ZRANGE', P .. 'park', 0, 999, 'WITHSCORES')
  for k = 1, #list, 2 do
    local t, q = string.match(list[k], '^(.*)/(.*)$')
    local of = not names or string.find(names, ',' .. q .. ',', 1, true)
    if k == 1999 or of and call('EXISTS', P .. 'bands:' .. tq(t, q)) == 1 then return tonumber(list[k + 1]) end
  end
end

-- waits says what holds a queue back: {1 when paused, how many run or -1 when that is no cap, the cap or 0, both of the tenant, from
-- when its rate allows a job or 0}.
local function waits(t, q)
  local s, from = settings(t, q), 0
  if s.r then from = ratefrom(t, q, s) end
  return {s.x, queuefull(t, q, s) and running('q:' .. t .. '/' .. q) or -1, s.m or 0, tenantfull(t) and running('t:' .. t) or -1,
    tenantcap(t), from > now and from or 0}
end
