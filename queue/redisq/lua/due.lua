#!lua flags=allow-oom
-- When maintain.lua has something to do: ms from now (0 = at once), or -1 for never, as things stand. The answer is kept as
-- what the caller sleeps until; whoever makes something due earlier wakes it.
-- Of several hosts one has the duty to look, until a second after what it sleeps until, and at most for a while; the others are told
-- when the duty ends, which it does not while its holder lives. ARGV: who ('' = only looks), 1 when it was woken (it has the duty from now on), ms that a caller
-- sleeps at most. Returns {ms, 1 for who has the duty}.
--@include settings
local me, woken, most = ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])
local till, holder = string.match(call('GET', P .. 'timerduty') or '0 ', '^(%d+) (.*)$')
till = tonumber(till)
if holder ~= me and now < till and not woken then return {till - now, 0} end
-- take has the duty for so many ms, and a second to come and do what is due.
local function take(ms) call('SET', P .. 'timerduty', string.format('%.0f %s', now + ms + 1000, me)) end
local c, first = conf(), math.huge
for _, key in ipairs({'delayed', 'leases', 'expiry'}) do
  local z = call('ZRANGE', P .. key, 0, 0, 'WITHSCORES')
  if z[2] then first = math.min(first, tonumber(z[2])) end
end
for s, age in pairs({S = c.done, C = c.done, E = c.done, D = c.dead}) do
  local z = age >= 0 and call('ZRANGE', P .. 'ended:' .. s, 0, 0, 'WITHSCORES') or {}
  if z[2] then first = math.min(first, tonumber(z[2]) + age) end
end
-- Nothing tells when a count is passed: it is looked at every ten seconds while jobs run, and at once when it is now.
local n = {most = -c.most, mostdead = -c.mostdead}
for s, bound in pairs({S = 'most', C = 'most', E = 'most', D = 'mostdead'}) do
  if c[bound] > 0 then n[bound] = n[bound] + call('ZCARD', P .. 'ended:' .. s) end
end
if n.most > 0 or n.mostdead > 0 then first = now end
if c.most + c.mostdead > 0 and call('EXISTS', P .. 'leases') == 1 then first = math.min(first, now + 10000) end
if me == '' then return {math.min(math.max(first - now, 0), most), 0} end
if first <= now then
  take(0)
  return {0, 1}
end
take(math.min(first - now, most))
if first == math.huge then
  call('DEL', P .. 'sleep')
  return {-1, 1}
end
call('SET', P .. 'sleep', string.format('%.0f', first))
return {first - now, 1}
