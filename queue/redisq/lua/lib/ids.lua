-- Ids of version 7 UUIDs in Crockford's base 32 that rise with creation: 48 bits of time, then 14 bits that count within a
-- millisecond, then the client's random bits.
local alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
local function char(v) return string.sub(alphabet, v + 1, v + 1) end
local function time10(ms)
  local out = {}
  for k = 10, 1, -1 do
    local v = ms % 32
    out[k], ms = char(v), (ms - v) / 32
  end
  return table.concat(out)
end
-- four writes version, number and variant.
local function four(n)
  local a, low = math.floor(n / 4), n % 4
  local high, bit = math.floor(a / 2048), a % 2
  return char(14 + high) .. char(math.floor(a / 64) % 32) .. char(math.floor(a / 2) % 32) .. char(bit * 16 + 8 + low)
end
-- ids returns the time and the first number of this call; room is left for 4096 jobs. seq is 'ms number' of the last call.
local function ids(start)
  local last = call('GET', P .. 'seq')
  if not last then return now, start end
  local ms, n = string.match(last, '^(%d+) (%d+)$')
  ms, n = tonumber(ms), tonumber(n)
  if ms < now then return now, start end
  if n <= 12287 then return ms, n end
  return ms + 1, start -- a full millisecond runs over into the next one
end
