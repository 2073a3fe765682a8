#!lua
-- Stores jobs.
-- ARGV: lane, number, a random number below 8192, tail (12 characters that end all ids of the call), then groups. A group of plain jobs,
-- made ready at once with nothing else to do:
--   'p', tenant, queue, priority or '', mark, n, number of the first job, n times record
--   'i', the same with the numbers of all jobs, two bytes each
-- one job with more to do:
--   's', tenant, queue, priority or '', record, mark and number, idempotency key, its fingerprint, its TTL in ms, PX of it or '',
--   unique key, 'r' or 'e' on conflict, delay in ms, expiry in ms, body or '', ms for which the unique key is held or ''
-- mark: two characters for the line entry, size class and flag. number: the job's place in the call, by which ids rise. A record begins
-- with the priority the client knows of, +0000 where the queue's default is asked for.
-- Returns {time of the ids in ms, number of the first, …} and three values for every job not created: its place in ARGV,
-- 'd' duplicate | 'm' other request under the key | 'h' unique key held, and the id, for 'h' with a letter for the holder's state.
-- A job's id is ten characters (48 bits of time), four for version, variant and the number, and the tail.
--@include settings sched lines record batch unique ids
local lane, number = ARGV[2], tonumber(ARGV[3])
local before = answered(lane, number)
if before then return before end
local ARGV, at, jobs, created = ARGV, 6, 0, 0
local ms, ctr = ids(tonumber(ARGV[4]))
local out = {ms, ctr}
local idof = idmaker(time10(ms), ARGV[5])

local function priority(t, q, p) return p ~= '' and tonumber(p) or settings(t, q).p end

-- Records are written before what points to them, many at a time.
local msg, records, puts = P .. 'msg:', {}, {}
local function write()
  if #records > 0 then call('MSET', unpack(records)) end
  for _, p in ipairs(puts) do put('RPUSH', p[1], p[2], p[3], p[4]) end
  records, puts = {}, {}
end

local function plain(t, q, p, mark, n, numbers)
  local b, entries, number = priority(t, q, p), {}, type(numbers) == 'number' and numbers
  local other = p == '' and b ~= 0 and string.format('%+05d', b) -- than the one the record begins with
  if #records + 2 * n > 4000 then write() end
  local r = #records
  for k = 1, n do
    local record, id = ARGV[at + k], nil
    if number then id = idof(ctr + number + k - 1)
    else
      local high, low = string.byte(numbers, 2 * k - 1, 2 * k)
      id = idof(ctr + 256 * high + low)
    end
    if other then record = other .. string.sub(record, 6) end
    entries[k] = id .. mark
    records[r + 1] = msg .. id
    records[r + 2] = record
    r = r + 2
  end
  at = at + n + 1
  puts[#puts + 1] = {t, q, b, entries}
  jobs, created = jobs + n, created + n
end

local function special(t, q, p)
  local record, meta, key, print, ttl, px, ukey, conflict, delay, expiry, body, window = unpack(ARGV, at, at + 11)
  local id, place = idof(ctr + string.sub(meta, 3)), jobs
  jobs, at = jobs + 1, at + 12
  local function refuse(...) for _, v in ipairs({place, ...}) do out[#out + 1] = v end end
  local keyname = P .. 'key:' .. t .. ':' .. key
  if key ~= '' then
    local kept = call('GET', keyname)
    if kept then
      kept = cmsgpack.unpack(kept)
      if now < kept.u then return refuse(kept.f == print and 'd' or 'm', kept.id) end
    end
  end
  if ukey ~= '' then
    local holder = uniqueholder(t, ukey)
    if holder and conflict == 'e' then return refuse('d', holder) end
    if holder then return refuse('h', holderstate(holder) .. holder) end
  end
  if key ~= '' then
    call('SET', keyname, cmsgpack.pack({id = id, f = print, u = now + tonumber(ttl)}))
    if px ~= '' then call('PEXPIRE', keyname, px) end
  end
  if window ~= '' then takewindow(t, ukey, id, tonumber(window), px ~= '')
  elseif ukey ~= '' then call('HSET', P .. 'unique:' .. t, ukey, id) end
  if body ~= '' then call('SET', P .. 'body:' .. id, body) end
  local b = priority(t, q, p)
  call('SET', P .. 'msg:' .. id, string.format('%+05d', b) .. string.sub(record, 6))
  created = created + 1
  if expiry ~= '' then
    call('ZADD', P .. 'expiry', now + tonumber(expiry), id)
    due(now + tonumber(expiry))
  end
  if delay == '' then return put('RPUSH', t, q, b, {id .. string.sub(meta, 1, 2)}) end
  used(t, q)
  schedule(id, load(id), 'd', now + tonumber(delay))
end

while at <= #ARGV do
  local kind, t, q, p = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  at = at + 4
  if kind ~= 's' then
    local mark, n, numbers = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
    at = at + 2
    plain(t, q, p, mark, n, kind == 'p' and tonumber(numbers) or numbers)
  else
    write()
    special(t, q, p)
  end
end
write()
call('SET', P .. 'seq', string.format('%.0f %.0f', ms, ctr + jobs))
call('HINCRBY', P .. 'count', 'enqueued', created)
wake()
return answer(lane, number, out)
