#!lua flags=allow-oom,no-writes
-- Counts the books in one moment, and compares the index of each view with the lines.
-- Returns {enqueued, removed, ready, scheduled, running, succeeded, dead, cancelled, expired, 1 when counts of what runs are wrong,
-- fault, …}.
--@include settings sched lines aside record recount
local faults, ready, running = {}, 0, 0
local function fault(text)
  if #faults < 100 then faults[#faults + 1] = text end
end
local competing = {}
eachline(function(t, q, b)
  local n = call('LLEN', readykey(t, q, b))
  local name = t .. '/' .. q .. ' priority ' .. string.format('%d', b)
  if n == 0 then fault('line ' .. name .. ' is empty') end
  ready = ready + n
  for _, v in ipairs(views()) do
    local want = not held(t, q, settings(t, q)) and inview(v, q) ~= nil and inview(v, q) ~= false
    local has = call('ZSCORE', P .. 'Q:' .. v.id .. ':' .. t .. ':' .. b, q) and true or false
    if want ~= has and not call('ZSCORE', P .. 'park', t .. '/' .. q) then fault('queue ' .. name .. ' with ' .. n .. ' jobs competes in view ' .. v.id .. ': ' .. tostring(has)) end
    local k = v.id .. ':' .. t
    if has then competing[k] = (competing[k] or 0) + 1 end
  end
end)
for _, v in ipairs(views()) do
  for _, t in ipairs(call('ZRANGE', P .. 'T:' .. v.id, 0, -1)) do
    local k, n = v.id .. ':' .. t, 0
    for _, b in ipairs(call('ZRANGE', P .. 'B:' .. k, 0, -1)) do n = n + call('ZCARD', P .. 'Q:' .. k .. ':' .. b) end
    if n ~= (competing[k] or 0) or n == 0 then fault('tenant ' .. t .. ' competes in view ' .. v.id .. ' with ' .. n .. ' lines') end
    competing[k] = nil
  end
end
for k in pairs(competing) do
  if not tenantfull(string.match(k, ':(.*)$')) then fault('the lines of ' .. k .. ' compete, but not their tenant') end
end
local count, keys = countrunning()
local wrong = 0
local function same(what, got, want)
  if got == want then return end
  wrong = 1
  fault(string.format('%s runs %d jobs, but %d are counted', what, want, got))
end
local all = call('HGETALL', P .. 'running')
for k = 1, #all, 2 do
  same(all[k], tonumber(all[k + 1]), count[all[k]] or 0)
  count[all[k]] = nil
end
for field, n in pairs(count) do same(field, 0, n) end
for _, t in ipairs(call('SMEMBERS', P .. 'tenants')) do
  for _, q in ipairs(call('SMEMBERS', P .. 'asides:' .. t)) do
    ready = ready + call('ZCARD', P .. 'aside:' .. tq(t, q))
    for _, key in ipairs(call('HKEYS', P .. 'slots:' .. tq(t, q))) do
      local k, free = slot(t, q, key), settings(t, q).k
      free = free - k.run
      if k.aside > 0 and k.back < free then
        fault(string.format('%d jobs of key %s of %s/%s are aside and %d came back, but %d may run', k.aside, key, t, q, k.back, free))
      end
      if k.aside ~= call('ZCARD', k.wait) then fault('the jobs aside of key ' .. key .. ' of ' .. t .. '/' .. q .. ' are miscounted') end
    end
  end
end
for name, n in pairs(keys) do
  local t, q, key = string.match(name, '^([^/]*)/([^:]*):(.*)$')
  same('key ' .. name, slot(t, q, key).run, n)
end
for _, tok in ipairs(call('ZRANGE', P .. 'leases', 0, -1)) do
  local n = call('HLEN', P .. 'b:' .. tok) - 1
  if n < 1 then fault('a batch has a lease and no job') end
  running = running + n
end
local c = call('HMGET', P .. 'count', 'enqueued', 'removed')
local out = {tonumber(c[1] or 0), tonumber(c[2] or 0), ready, call('ZCARD', P .. 'delayed'), running}
for _, s in ipairs({'S', 'D', 'C', 'E'}) do out[#out + 1] = call('ZCARD', P .. 'ended:' .. s) end
local sum = out[2]
for k = 3, 9 do sum = sum + out[k] end
if sum ~= out[1] then fault(string.format('%d jobs exist or were removed, but %d were enqueued', sum, out[1])) end
out[#out + 1] = wrong
for _, f in ipairs(faults) do out[#out + 1] = f end
return out
