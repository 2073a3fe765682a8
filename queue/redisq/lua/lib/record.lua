-- The record of a job, msg:<id>: band ('%+05d'), length of the head (6 hex digits), head (msgpack map, changed here), and the
-- rest, written once by the client and never read here. Fields of the head (absent = zero):
--   t q     tenant, queue              r a c n  run, attempts, crashes, interruptions    m  attempt budget
--   s       'w' scheduled, 'S' 'D' 'C' 'E' ended; none: ready or running                 rs nx  reason, next run
--   st f    started, finished          x  expires_in ms                                  z  payload bytes, B = 1: in body:<id>
--   i u us  idempotency key, unique key, 1 = until started, 2 = a window      e  last error {k m y}
--   at      attempts                   h  handler {r v}                                  p  progress {d t m a}
--   rl ck   length of result:<id>, check:<id>                                            g  log: {s r a z f t}
--   k fk    concurrency key, 1 = put to the front where others had left their places
--   l       length of the rest        er  when payload and result were erased
-- An acknowledged job that needed nothing else has a tail behind that: start and end of the last attempt in ms (doubles), length of the
-- worker's name (16 bits), the name, and the info of its settlement.
local function finished(j, tail)
  local st, f, n = struct.unpack('>ddI2', tail)
  local i = cmsgpack.unpack(string.sub(tail, 19 + n))
  j.s, j.f, j.st, j.a = 'S', f, st, (j.a or 0) + 1
  j.at = j.at or {}
  if #j.at == 100 then table.remove(j.at, 1) end
  j.at[#j.at + 1] = {r = j.r or 1, a = j.a, o = 'S', s = st, d = i.d, f = i.f, p = i.p, w = string.sub(tail, 19, 18 + n), hr = i.hr, hv = i.hv}
  if i.hr or i.hv then j.h = {r = i.hr, v = i.hv} end
end
local function decode(s)
  local n = tonumber(string.sub(s, 6, 11), 16)
  local j = cmsgpack.unpack(string.sub(s, 12, 11 + n))
  local stop = 11 + n + j.l
  if #s > stop then finished(j, string.sub(s, stop + 1)) end
  return j, tonumber(string.sub(s, 1, 5)), string.sub(s, 12 + n, stop)
end
local rest, band = {}, {}
local function load(id)
  local s = call('GET', P .. 'msg:' .. id)
  if not s then return nil end
  local ok, j, b, r = pcall(decode, s)
  if not ok then return redis.error_reply('DAMAGED record of ' .. id) end
  rest[id], band[id] = r, b
  return j
end
local function save(id, j)
  local head = cmsgpack.pack(j)
  call('SET', P .. 'msg:' .. id, string.format('%+05d%06x', band[id], #head) .. head .. rest[id])
end

-- entry is what stands for a job in its line.
local function sizeclass(z)
  local c, top = 0, 64
  while top < z do c, top = c + 1, top * 2 end
  return string.char(97 + c)
end
local function entry(id, j)
  local flag = 'p'
  if j.k or j.fk then flag = 'k' elseif j.us == 1 or j.x and not j.st then flag = 'x' elseif j.u or j.B or j.ck or j.g then flag = 's' end
  return id .. sizeclass(j.z or 0) .. flag
end

local function freeunique(id, j)
  local key = P .. 'unique:' .. j.t
  if j.u and j.us ~= 2 and call('HGET', key, j.u) == id then call('HDEL', key, j.u) end
end

-- erase removes every trace of a job that is in no line and no index, but its idempotency key.
local function erase(id, j)
  freeunique(id, j)
  call('DEL', P .. 'msg:' .. id, P .. 'body:' .. id, P .. 'result:' .. id, P .. 'check:' .. id, P .. 'log:' .. id)
  call('HINCRBY', P .. 'count', 'removed', 1)
  touch(id, true)
end

-- finish ends a job that is in no line, no schedule and no batch.
local function finish(id, j, s)
  local c = conf()
  j.s, j.rs, j.nx, j.f = s, nil, nil, now
  if s ~= 'D' and j.ck then
    call('DEL', P .. 'check:' .. id)
    j.ck = nil
  end
  freeunique(id, j)
  if j.g and not (c.logs == 'all' or c.logs ~= 'none' and j.e) then
    call('DEL', P .. 'log:' .. id)
    j.g = {s = j.g.s}
  end
  local age = s == 'D' and c.dead or c.done
  if age == 0 then return erase(id, j) end
  save(id, j)
  call('ZADD', P .. 'ended:' .. s, now, id)
  call('ZADD', P .. (s == 'D' and 'dlq:' or 'jobs:') .. j.t, 0, id)
  if s == 'D' then call('HINCRBY', P .. 'dead:' .. j.t, j.q, 1) end
  if age > 0 then due(now + age) end
  touch(id)
end

-- unfile takes an ended job out of its indexes.
local function unfile(id, j)
  call('ZREM', P .. 'ended:' .. j.s, id)
  call('ZREM', P .. (j.s == 'D' and 'dlq:' or 'jobs:') .. j.t, id)
  if j.s == 'D' and call('HINCRBY', P .. 'dead:' .. j.t, j.q, -1) == 0 then call('HDEL', P .. 'dead:' .. j.t, j.q) end
end

-- schedule makes a job wait until a time.
local function schedule(id, j, reason, at)
  j.s, j.rs, j.nx = 'w', reason, at
  save(id, j)
  call('ZADD', P .. 'delayed', at, id)
  call('ZADD', P .. 'delayed:' .. j.t, 0, id)
  call('HINCRBY', P .. 'waiting:' .. j.t, j.q, 1)
  due(at)
  touch(id)
end
local function unschedule(id, j)
  call('ZREM', P .. 'delayed', id)
  call('ZREM', P .. 'delayed:' .. j.t, id)
  if call('HINCRBY', P .. 'waiting:' .. j.t, j.q, -1) == 0 then call('HDEL', P .. 'waiting:' .. j.t, j.q) end
end

-- totail makes a job ready behind all others of its line.
local function totail(id, j)
  j.s, j.rs, j.nx, j.fk = nil, nil, nil, nil
  save(id, j)
  put('RPUSH', j.t, j.q, band[id], {entry(id, j)})
  touch(id)
end

-- dropwaiting takes a waiting job (ready or scheduled) out of wherever it waits.
local function dropwaiting(id, j)
  if j.s == 'w' then unschedule(id, j) else takeout(j.t, j.q, band[id], entry(id, j), j.k) end
  if j.x and not j.st then call('ZREM', P .. 'expiry', id) end
end
