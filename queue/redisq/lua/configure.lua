#!lua flags=allow-oom
-- Replaces the configured settings. ARGV: digest of the rest, 1 when they have a limit, then fields and values of conf (see
-- lib/settings.lua). Returns 1, or 0 when nothing differs, as when a second host of the same configuration starts.
--@include settings sched lines aside record batch recount
if call('HGET', P .. 'conf', '#') == ARGV[2] then return 0 end
call('DEL', P .. 'conf')
call('HSET', P .. 'conf', '#', ARGV[2])
push('HSET', P .. 'conf', {unpack(ARGV, 4)})
if call('HEXISTS', P .. 'conf', 'unit') == 0 then call('DEL', P .. 'cost') end
if ARGV[3] == '1' then call('SET', P .. 'limits', '1') end
if limited() then
  for _, k in ipairs(call('HKEYS', P .. 'bucket')) do dropbucket(k) end
  recount()
end
for _, t in ipairs(call('SMEMBERS', P .. 'tenants')) do resync(t) end
for _, v in ipairs(views()) do
  local ten = P .. 'ten:' .. v.id
  for _, t in ipairs(call('ZRANGE', P .. 'T:' .. v.id, 0, -1)) do reweigh(ten, t, P .. 'T:' .. v.id, t, tenantweight(t)) end
end
wake()
call('DEL', P .. 'sleep')
call('RPUSH', P .. 'timer', '1')
return 1
