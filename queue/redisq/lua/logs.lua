#!lua flags=allow-oom,no-writes
-- Reads a log. ARGV: tenant, id, after which number, most lines. Returns false (no such job) or {1 when truncated, line, …}.
--@include record
local t, id, after, most = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local j = load(id)
if not j or j.t ~= t then return false end
if j.err then return j end
local g, key, out = j.g or {s = 0}, P .. 'log:' .. id, {}
local from = math.max(0, after - (g.s - call('LLEN', key)))
local lines = call('LRANGE', key, from, from + most - 1)
out[1] = g.t or 0
for k, l in ipairs(lines) do out[k + 1] = l end
return out
