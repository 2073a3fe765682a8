#!lua flags=allow-oom,no-writes
-- Counts the books in one moment, and compares the index of each view with the lines.
-- Returns {enqueued, removed, ready, scheduled, running, succeeded, dead, cancelled, expired, fault, …}.
--@include settings sched lines
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
    local want = settings(t, q).x == 0 and inview(v, q) ~= nil and inview(v, q) ~= false
    local has = call('ZSCORE', P .. 'Q:' .. v.id .. ':' .. t .. ':' .. b, q) and true or false
    if want ~= has then fault('queue ' .. name .. ' with ' .. n .. ' jobs competes in view ' .. v.id .. ': ' .. tostring(has)) end
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
for k in pairs(competing) do fault('the lines of ' .. k .. ' compete, but not their tenant') end
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
for _, f in ipairs(faults) do out[#out + 1] = f end
return out
