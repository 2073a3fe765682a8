#!lua flags=allow-oom
-- Makes one change to many jobs. ARGV: lane, number, 'cancel', 'retry', 'replay', 'purge' or 'erase', tenant, other queue or '', most
-- entries of lines to walk over, ids; for erase, each id is followed by what stays of the part of its record that no script reads.
-- Returns a letter per id: C changed, S skipped, '-' no such job. There may be fewer letters than ids: the rest was not looked
-- at, because taking those before it out of long lines was enough for one call.
--@include settings sched lines aside record batch unique bulk
local lane, number = ARGV[2], tonumber(ARGV[3])
local before = answered(lane, number)
if before then return before end
local verb, t, to, walk = ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
local step = verb == 'erase' and 2 or 1
local ids, out = {}, {}
for k = 8, #ARGV, step do ids[#ids + 1] = ARGV[k] end
local running = runningof(ids)

local function ended(j) return j.s and j.s ~= 'w' end

local change = {
  cancel = function(id, j)
    if ended(j) then return 'S' end
    local tok = running[id]
    if not tok then
      dropwaiting(id, j)
      finish(id, j, 'C')
      return 'C'
    end
    local r = parse(call('HGET', P .. 'b:' .. tok, id))
    if r.c then return 'S' end
    r.c, r.flag = true, 's'
    call('HSET', P .. 'b:' .. tok, id, value(r))
    touch(id)
    return 'C'
  end,
  retry = function(id, j)
    if j.s ~= 'w' or j.rs ~= 'r' then return 'S' end
    unschedule(id, j)
    totail(id, j)
    return 'C'
  end,
  replay = function(id, j) return j.s == 'D' and replay(id, j, to) or 'S' end,
  purge = function(id, j)
    if running[id] then return 'S' end
    if ended(j) then unfile(id, j) else dropwaiting(id, j) end
    erase(id, j)
    return 'C'
  end,
  erase = function(id, j, k) -- k: where the id stands
    if not ended(j) or j.er then return 'S' end
    strip(id, j, ARGV[k + 1])
    return 'C'
  end,
}

for n, id in ipairs(ids) do
  local j = load(id)
  if not j or j.err or j.t ~= t then out[n] = '-'
  else
    if not j.s and not running[id] and (verb == 'cancel' or verb == 'purge') then
      walk = walk - call('LLEN', readykey(t, j.q, string.format('%d', band[id])))
    end
    out[n] = change[verb](id, j, 6 + 2 * n)
    if walk < 0 then break end
  end
end
wake()
return answer(lane, number, table.concat(out))
