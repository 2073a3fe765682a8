-- Settings in force. conf is a HASH: '' → what belongs to no queue, 'q:<queue>' → a template, 't:<tenant>' → a weight,
-- 'm:<tenant>' → a cap, 'unit' → the ms that cost as much as a job otherwise, where time is charged (lib/cost.lua); over:<tenant> is a HASH queue → override, overridden the SET of tenants that have one. Values are msgpack
-- maps with w(eight), p(riority), x (1 = paused), m (most that run), k (most per concurrency key), r, rp (rate: jobs per ms).
-- limits exists once a queue or tenant has had a limit: until then nobody looks for one.
-- configured reads one field of conf, and the unit: weights are multiplied by it.
local unit
local function configured(field)
  local c = call('HMGET', P .. 'conf', field, 'unit')
  unit = tonumber(c[2] or 0)
  return c[1]
end

local kept
local function conf()
  if not kept then
    kept = {guard = 0, crashes = 3, done = 86400000, dead = 2592000000, logs = 'failed', most = 0, mostdead = 0}
    local c = configured('')
    if c then for k, v in pairs(cmsgpack.unpack(c)) do kept[k] = v end end
  end
  return kept
end

local known, templates, overridden = {}, {}, nil
local function settings(t, q)
  local k = t .. '/' .. q
  local s = known[k]
  if s then return s end
  if overridden == nil then overridden = call('EXISTS', P .. 'overridden') == 1 end
  local template = templates[q]
  if template == nil then
    template = configured('q:' .. q)
    templates[q] = template
  end
  local override = overridden and call('HGET', P .. 'over:' .. t, q)
  s = {w = 1, p = 0, x = 0, k = 1}
  if template then for f, v in pairs(cmsgpack.unpack(template)) do s[f] = v end end
  if override then for f, v in pairs(cmsgpack.unpack(override)) do s[f] = v end end
  if unit > 0 then s.w = s.w * unit end
  known[k] = s
  return s
end

local function tenantweight(t)
  local w = tonumber(configured('t:' .. t) or 1)
  return unit > 0 and w * unit or w
end

local haslimits
local function limited()
  if haslimits == nil then haslimits = call('EXISTS', P .. 'limits') == 1 end
  return haslimits
end
local caps = {}
local function tenantcap(t)
  if not limited() then return 0 end
  if not caps[t] then caps[t] = tonumber(call('HGET', P .. 'conf', 'm:' .. t) or 0) end
  return caps[t]
end
