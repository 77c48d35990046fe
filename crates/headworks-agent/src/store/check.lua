-- One check, whole or not at all: looks at every bucket of KEYS, and charges them if no enforced one refuses.
--
-- ARGV has for each key: a byte for the algorithm, one that is 1 if a refusal counts, and as doubles the cost to find room
-- for, the charge to take, and three numbers of the rule. The answer has three doubles for each: 1 if it passes, the
-- units left, and the time until the same cost fits (0: at once). Times are microseconds by the clock of this server alone,
-- so that its clients' clocks need not agree; a clock that goes back stands still. Numbers stay below 2^53, where they
-- are whole, but for absurd rates. Every key expires, within a second and twice the time after which it is as good as
-- none; that moment is kept with it, since setting it anew takes half as long as all the rest.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local unpack, pack = struct.unpack, struct.pack
local answer = ''

-- When a key expires that is needed for so long, and expires then so far.
local function expiry(need, dies)
  if dies < now + need then return now + 2 * need + 1000000 end
  return dies
end

local function keep(key, value, dies, dies_then)
  if dies == dies_then then
    redis.call('SET', key, value, 'KEEPTTL')
  else
    redis.call('SET', key, value, 'PX', min(ceil((dies - now) / 1000), 1e15))
  end
end

-- Looks at the bucket of this place, and charges it if it passes and may be charged. Says whether it does not stand in the way.
local function check(place, may_charge)
  local key = KEYS[place]
  local algorithm, counts, cost, charge, amount, length, parts = unpack('BBddddd', ARGV[place])
  local kept = redis.call('GET', key)
  local passes, left, wait, dies = true, 0, 0, 0

  if algorithm == 1 then
    -- A token bucket: when it expires, what is spent in parts of a unit, how many parts a unit had, and when that was.
    -- The rule: units that the bucket holds, parts that come back in a microsecond, parts of a unit.
    local all, back, spent, seen = amount * parts, length, 0, now
    if kept then
      local parts_then, seen_then
      dies, spent, parts_then, seen_then = unpack('dddd', kept)
      if parts_then ~= parts then spent = ceil(spent * parts / parts_then) end
      seen = max(now, seen_then)
      spent = max(0, min(spent, all) - (seen - seen_then) * back)
    end
    left = floor((all - spent) / parts)
    passes = cost <= left
    if passes and may_charge and charge > 0 then
      spent = spent + charge * parts
      left = floor((all - spent) / parts)
      local dies_then = dies
      dies = expiry(spent / back + seen - now, dies)
      keep(key, pack('dddd', dies, spent, parts, seen), dies, dies_then)
    end
    wait = max(0, ceil((spent + cost * parts - all) / back))

  elseif algorithm == 2 then
    -- A sliding window: when it expires, its length, the units of all entries, when the newest began; then for each entry, the
    -- oldest first, when it was charged last, and its units. Charges that come within a 64th of the window share an entry.
    local used, began, seen, entries = 0, now, now, ''
    if kept then
      local length_then
      dies, length_then, used, began = unpack('dddd', kept)
      seen = max(now, (unpack('d', kept, #kept - 15)))
      local first = 33
      while first < #kept do
        local last, units = unpack('dd', kept, first)
        if last + length_then > seen then break end
        used, first = used - units, first + 16
      end
      entries = kept:sub(first)
      if length_then ~= length then
        used = min(used, amount)
        began, entries = seen, used > 0 and pack('dd', seen, used) or ''
      end
    end
    left = max(0, amount - used)
    passes = cost <= left
    if passes and may_charge and charge > 0 then
      local units = charge
      if #entries > 0 and seen - began < length / 64 then
        local _, before = unpack('dd', entries, #entries - 15)
        units, entries = before + charge, entries:sub(1, -17)
      else
        began = seen
      end
      used, left = used + charge, left - charge
      entries = entries .. pack('dd', seen, units)
      local dies_then = dies
      dies = expiry(length + seen - now, dies)
      keep(key, pack('dddd', dies, length, used, began) .. entries, dies, dies_then)
    end
    local over = used + cost - amount
    local entry = 1
    while over > 0 and entry < #entries do
      local last, units = unpack('dd', entries, entry)
      over, entry, wait = over - units, entry + 16, last + length - now
    end

  else
    -- A fixed window: when it expires, its length, when it began, and the units used in it.
    local began, used = now - now % length, 0
    if kept then
      local length_then, began_then, used_then
      dies, length_then, began_then, used_then = unpack('dddd', kept)
      if length_then == length then
        if began_then >= began then began, used = began_then, used_then end
      elseif began_then + length_then > now then
        used = min(used_then, amount)
      end
    end
    left = max(0, amount - used)
    passes = cost <= left
    if passes and may_charge and charge > 0 then
      used, left = used + charge, left - charge
      local dies_then = dies
      dies = expiry(began + length - now, dies)
      keep(key, pack('dddd', dies, length, began, used), dies, dies_then)
    end
    if used + cost > amount then wait = began + length - now end
  end

  answer = answer .. pack('ddd', passes and 1 or 0, left, wait)
  return passes or counts == 0
end

local last = #KEYS
local granted = true
for place = 1, last - 1 do granted = check(place, false) and granted end
granted = check(last, granted) and granted
if granted and last > 1 then
  -- What was only looked at is charged as well, and the last once more looked at, which comes last in the answer.
  local of_last = answer:sub(-24)
  answer = ''
  for place = 1, last - 1 do check(place, true) end
  answer = answer .. of_last
end
return answer
