#!lua flags=allow-oom
-- Replaces the configured settings. ARGV: digest of the rest, then fields and values of conf (see lib/settings.lua).
-- Returns 1, or 0 when nothing differs, as when a second host of the same configuration starts.
--@include settings sched lines
if call('HGET', P .. 'conf', '#') == ARGV[2] then return 0 end
call('DEL', P .. 'conf')
call('HSET', P .. 'conf', '#', unpack(ARGV, 2, 4))
push('HSET', P .. 'conf', {unpack(ARGV, 5)})
eachline(refresh)
for _, v in ipairs(views()) do
  local ten = P .. 'ten:' .. v.id
  for _, t in ipairs(call('ZRANGE', P .. 'T:' .. v.id, 0, -1)) do reweigh(ten, t, P .. 'T:' .. v.id, t, tenantweight(t)) end
end
wake()
call('DEL', P .. 'sleep')
call('RPUSH', P .. 'wake:due', '1')
return 1
