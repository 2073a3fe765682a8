#!lua flags=allow-oom
-- Takes, renews or gives back a named lease. ARGV: name, holder, length in ms (0 = give back), PX or ''. Returns 1 or 0.
--@include
local key, holder, ttl = P .. 'nlease:' .. ARGV[2], ARGV[3], tonumber(ARGV[4])
local kept = call('GET', key)
local l = kept and cmsgpack.unpack(kept)
if ttl == 0 then
  if l and l.h == holder then call('DEL', key) end
  return 1
end
if l and now < l.u and l.h ~= holder then return 0 end
call('SET', key, cmsgpack.pack({h = holder, u = now + ttl}))
if ARGV[5] ~= '' then call('PEXPIRE', key, ARGV[5]) end
return 1
