-- Reserved batches: b:<token> is a HASH of id → value, and '' → header; leases is a ZSET of tokens by the earliest end of a
-- lease in the batch. A value is a flag (see lines.lua), the place in the batch, ';' and which of the header's tenants it is of (1
-- unless given) and, when they differ from the header's or are set, the lease's end and a cancel request: 'p12', 'p4;2',
-- 's3,1700000000000', 's3,,c'. The header is a msgpack map:
--   s u  start, end of leases    w  worker    n  number of the batch    l  length of a lease    m = 1: leases differ    t  tenants
--   c = what was charged, where time is (lib/cost.lua)
--   g = 1: the store was away; what is reclaimed is an interruption
local function header(tok)
  local s = call('HGET', P .. 'b:' .. tok, '')
  return s and cmsgpack.unpack(s)
end
-- The padding makes the value longer than a listpack may hold (64 bytes by default): as a listpack, every look-up in a batch
-- of 64 would be a scan.
local function setheader(tok, h)
  h.pad = '................................................................'
  call('HSET', P .. 'b:' .. tok, '', cmsgpack.pack(h))
end
-- placename writes a place. (To make a number text costs as much as ten look-ups do; a usual batch has 64 at most.)
local placenames = {
  '1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14', '15', '16', '17', '18', '19', '20', '21',
  '22', '23', '24', '25', '26', '27', '28', '29', '30', '31', '32', '33', '34', '35', '36', '37', '38', '39', '40', '41',
  '42', '43', '44', '45', '46', '47', '48', '49', '50', '51', '52', '53', '54', '55', '56', '57', '58', '59', '60', '61',
  '62', '63', '64'
}
local function placename(n) return placenames[n] or string.format('%.0f', n) end
local function parse(v)
  local flag, place, t, u, c = string.match(v, '^(%a)(%d+)(;?%d*),?(%d*),?(c?)$')
  return {flag = flag, place = tonumber(place), t = t, u = tonumber(u), c = c == 'c'}
end
local function value(r)
  local s = r.flag .. string.format('%.0f', r.place) .. r.t
  if r.c then return s .. ',' .. (r.u and string.format('%.0f', r.u) or '') .. ',c' end
  if r.u then return s .. ',' .. string.format('%.0f', r.u) end
  return s
end

-- drop forgets a batch, close one that has no jobs left.
local function drop(tok)
  call('DEL', P .. 'b:' .. tok)
  call('ZREM', P .. 'leases', tok)
end
local function close(tok)
  if call('HLEN', P .. 'b:' .. tok) <= 1 then drop(tok) end
end
