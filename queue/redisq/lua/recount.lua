#!lua flags=allow-oom
-- Counts anew what runs of queues, tenants and concurrency keys with a cap, as the audit asks for.
--@include settings sched lines aside record batch recount
recount()
local _, keys = countrunning()
for _, t in ipairs(call('SMEMBERS', P .. 'tenants')) do
  for _, q in ipairs(call('HKEYS', P .. 'served:' .. t)) do
    for _, key in ipairs(call('HKEYS', P .. 'slots:' .. tq(t, q))) do
      local k = slot(t, q, key)
      k.run = keys[t .. '/' .. q .. ':' .. key] or 0
      keys[t .. '/' .. q .. ':' .. key] = nil
      bringback(k)
    end
  end
end
for name, n in pairs(keys) do
  local t, q, key = string.match(name, '^([^/]*)/([^:]*):(.*)$')
  local k = slot(t, q, key)
  k.run = n
  keep(k)
end
for _, t in ipairs(call('SMEMBERS', P .. 'tenants')) do resync(t) end
wake()
return 1
