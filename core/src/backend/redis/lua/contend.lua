-- One look of a contender.
-- ARGV: 1 owner value, 2 channel prefix, 3 ttl ms, 4 mode: intro | again | try
-- Returns {'granted', token, 1 if the grant had been made before}, {'gone'}, {'busy'}, {'newer'},
--   {'queued', holder's remaining ms, smallest token of a later grant, 1 if first in line,
--    1 if the holder is foreign}
-- Calls: free and nobody waiting 6, queued 8, look-again 8, granted by a hand-off 3.
local me, ttl, mode = ARGV[1], tonumber(ARGV[3]), ARGV[4]

local holder = redis.call('GET', LOCK)
if holder == me then
  -- Granted by a hand-off, or by an earlier request whose answer was lost.
  read_record()
  redis.call('PEXPIRE', LOCK, ttl)
  if not token then
    token, flag, lost = now(), 'H', now() - 1
    write_record(ttl)
  end
  return {'granted', token, 1}
end
local foreign = holder and not shape(holder)
local layout = foreign and string.match(holder, '^fl(%d+):')
if layout and layout ~= '1' then
  return {'newer'}
end

local rank
if mode == 'again' then
  -- A look-again never introduces: its owner id may have ended meanwhile.
  rank = redis.call('ZRANK', QUEUE, me)
  if not rank then
    return {'gone'}
  end
elseif holder then
  if redis.call('EXISTS', TOMB) == 1 then
    return {'gone'}
  end
  if mode == 'try' then
    return {'busy'}
  end
end

if not holder then
  local waiting = rank
  if not rank and redis.call('EXISTS', TOMB, QUEUE) > 0 then
    if redis.call('EXISTS', TOMB) == 1 then
      return {'gone'}
    end
    waiting = true
  end
  read_record()
  if not waiting then
    return {'granted', mint(me, ttl), 0}
  end
  -- No barging: who waits goes first, also before a newcomer that finds the lock free.
  holder = hand_off(me, ttl)
  if not holder and redis.call('EXISTS', QUEUE) == 0 then
    mint(me, ttl)
    holder = me
  end
  if holder == me then
    return {'granted', token, 0}
  end
  if mode == 'try' then
    return {'busy'}
  end
  rank = rank and redis.call('ZRANK', QUEUE, me)
else
  read_record()
end

local remaining = redis.call('PTTL', LOCK)
local first
local sign = math.floor(now() / 1000) + math.min(ttl, LIFE_SPAN)
if mode == 'again' then
  -- PEXPIRE first: a full server refuses a script whose first write is ZADD, but who has a
  -- place shall keep it.
  redis.call('PEXPIRE', QUEUE, HELPER_TTL)
  redis.call('ZADD', ALIVE, string.format('%.0f', sign), me)
  redis.call('PEXPIRE', ALIVE, HELPER_TTL)
  first = rank == 0
else
  local last = redis.call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')
  local order = math.max((tonumber(last[2]) or 0) + 1, now())
  if redis.call('ZADD', QUEUE, 'NX', string.format('%.0f', order), me) == 1 then
    first = not last[1]
  else
    redis.call('ZADD', ALIVE, string.format('%.0f', sign), me)
    redis.call('PEXPIRE', ALIVE, HELPER_TTL)
    first = redis.call('ZRANK', QUEUE, me) == 0
  end
  redis.call('PEXPIRE', QUEUE, HELPER_TTL)
end
-- More dead contenders than one call drops: who looks next goes on, so let it be at once.
first = first or not holder
return {
  'queued', remaining, math.max((token or 0) + 1, now()), first and 1 or 0, foreign and 1 or 0
}
