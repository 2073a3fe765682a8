#!lua flags=allow-oom
-- Stores what a running handler says of itself. ARGV: lane, number, token, id, kind, then for
--   'progress'  done, total, message
--   'check'     data
--   'log'       most bytes of an attempt, then per line: time in ms or '', level, message
-- Returns 'L' (lease lost) or 'K'.
--@include record batch
local lane, number = ARGV[2], tonumber(ARGV[3])
local before = answered(lane, number)
if before then return before end
local tok, id, kind = ARGV[4], ARGV[5], ARGV[6]
local v = call('HGET', P .. 'b:' .. tok, id)
if not v then return answer(lane, number, 'L') end
local j = load(id)
if not j then return answer(lane, number, 'L') end
if j.err then return j end

local function special()
  local r = parse(v)
  if r.flag == 's' then return end
  r.flag = 's'
  call('HSET', P .. 'b:' .. tok, id, value(r))
end

if kind == 'progress' then
  j.p = {d = ARGV[7], t = ARGV[8], m = ARGV[9], a = now}
elseif kind == 'check' then
  if ARGV[7] == '' then
    call('DEL', P .. 'check:' .. id)
    j.ck = nil
  else
    call('SET', P .. 'check:' .. id, ARGV[7])
    j.ck = #ARGV[7]
    special()
  end
else
  local g = j.g or {s = 0}
  local run, attempt, most = j.r or 1, (j.a or 0) + 1, tonumber(ARGV[7])
  if g.r ~= run or g.a ~= attempt then g.r, g.a, g.z, g.f = run, attempt, 0, nil end
  for k = 8, #ARGV, 3 do
    local message = ARGV[k + 2]
    if g.f or g.z + #message > most then g.f, g.t = 1, 1
    else
      g.z, g.s = g.z + #message, g.s + 1
      local at = ARGV[k] == '' and now or tonumber(ARGV[k])
      call('RPUSH', P .. 'log:' .. id, cmsgpack.pack({s = g.s, r = run, a = attempt, t = at, l = ARGV[k + 1], m = message}))
    end
  end
  if #ARGV > 7 then
    j.g = g
    special()
  end
end
save(id, j)
touch(id)
return answer(lane, number, 'K')
