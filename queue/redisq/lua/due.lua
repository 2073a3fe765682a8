#!lua flags=allow-oom
-- When maintain.lua has something to do: ms from now (0 = at once), or -1 for never, as things stand. The answer is kept as
-- what the caller sleeps until; whoever makes something due earlier wakes it.
--@include settings
local c, first = conf(), math.huge
for _, key in ipairs({'delayed', 'leases', 'expiry'}) do
  local z = call('ZRANGE', P .. key, 0, 0, 'WITHSCORES')
  if z[2] then first = math.min(first, tonumber(z[2])) end
end
for s, age in pairs({S = c.done, C = c.done, E = c.done, D = c.dead}) do
  local z = age >= 0 and call('ZRANGE', P .. 'ended:' .. s, 0, 0, 'WITHSCORES') or {}
  if z[2] then first = math.min(first, tonumber(z[2]) + age) end
end
-- Nothing tells when a count is passed: it is looked at every ten seconds, and at once when it is now.
local n = {most = -c.most, mostdead = -c.mostdead}
for s, bound in pairs({S = 'most', C = 'most', E = 'most', D = 'mostdead'}) do
  if c[bound] > 0 then n[bound] = n[bound] + call('ZCARD', P .. 'ended:' .. s) end
end
if n.most > 0 or n.mostdead > 0 then return 0 end
if c.most + c.mostdead > 0 then first = math.min(first, now + 10000) end
if first <= now then return 0 end
call('DEL', P .. 'timer')
if first == math.huge then
  call('DEL', P .. 'sleep')
  return -1
end
call('SET', P .. 'sleep', string.format('%.0f', first))
return first - now
