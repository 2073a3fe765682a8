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
-- idmaker returns a function that puts an id together: time, version and variant with the number, tail. Eight numbers in a row share
-- all but one character.
local function idmaker(pre, tail)
  local ends, heads = {}, {}
  for r = 0, 7 do ends[r] = char(math.floor(r / 4) * 16 + 8 + r % 4) .. tail end
  return function(n)
    local r = n % 8
    local h = (n - r) / 8
    local head = heads[h]
    if not head then
      head = pre .. char(14 + math.floor(h / 1024)) .. char(math.floor(h / 32) % 32) .. char(h % 32)
      heads[h] = head
    end
    return head .. ends[r]
  end
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
