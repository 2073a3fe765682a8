-- What every script begins with.
-- KEYS[1] the prefix of all keys; ARGV[1] store time in ms, empty = Redis TIME (see Options.Clock).
local call = redis.call
local P = KEYS[1]
-- Hosts without Lua (redis.send is theirs) would not notice what a script in Redis writes: see mode.go.
if not redis.send and call('GET', P .. 'mode') == 'nolua' then
  return redis.error_reply('MODE the hosts of this store do without Lua')
end
local now = tonumber(ARGV[1])
if not now then
  local t = call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end

-- The default tenant has R1's keys (ready:<queue>), the others name themselves (ready:<tenant>/<queue>).
local function tq(t, q) return t == 'default' and q or t .. '/' .. q end
local function readykey(t, q, b)
  if t == 'default' then return P .. 'ready:' .. q .. ':' .. b end
  return P .. 'ready:' .. t .. '/' .. q .. ':' .. b
end

-- push appends a list of any length: unpack() dies near 8,000 values.
local function push(cmd, key, list)
  for i = 1, #list, 1000 do call(cmd, key, unpack(list, i, math.min(i + 999, #list))) end
end

-- two appends a pair. (Not by one assignment: #list is read before it grows.)
local function two(list, a, b)
  local n = #list
  list[n + 1] = a
  list[n + 2] = b
end

-- A lost reply: every call that changes something carries the name of a lane and a number that rises in it. The answer of the
-- last call of a lane is kept, so that the same call sent again gets it and changes nothing; an older one that arrives late
-- is refused.
local lanettl = 600000
local function answered(lane, number)
  local kept = call('GET', P .. 'call:' .. lane)
  if not kept then return nil end
  local last = cmsgpack.unpack(kept)
  if last.n == number then return last.a end
  if last.n > number then return redis.error_reply('STALE the call was given up by its sender') end
  return nil
end
local function answer(lane, number, a)
  call('SET', P .. 'call:' .. lane, cmsgpack.pack({n = number, a = a}), 'PX', lanettl)
  return a
end

-- Whoever watches a job subscribes to its channel and to 'watching': a script publishes only while somebody does.
local watched
local function touch(id, gone)
  if watched == nil then watched = call('PUBSUB', 'NUMSUB', P .. 'watching')[2] > 0 end
  if watched then call('PUBLISH', P .. 'watch:' .. id, gone and 'gone' or '') end
end

-- due tells two sleepers of WaitDue that something becomes due at a time earlier than the one they sleep until: the second, should the first die.
local sleeping
local function due(at)
  if sleeping == nil then sleeping = tonumber(call('GET', P .. 'sleep') or 'inf') or math.huge end
  if at < sleeping then
    sleeping = at
    call('SET', P .. 'sleep', string.format('%.0f', at))
    if call('LLEN', P .. 'timer') == 0 then call('RPUSH', P .. 'timer', '1', '1') end
  end
end
