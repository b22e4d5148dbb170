-- Ends a place: gives back a lease, withdraws a contender, or cleans up after a loss.
-- ARGV: 1 owner value, 2 channel prefix, 3 token (0 = none known), 4 '1' to leave a tombstone
-- Returns 'released', 'lost' or 'unknown'. The verdict goes by token, because a late request may
-- have granted the same owner id once more.
-- Calls: nobody waiting 5, with a hand-off 9.
local me, mine = ARGV[1], tonumber(ARGV[3])

local ours = redis.call('GET', LOCK)
local free = not ours
ours = ours == me
read_record()
if ours then
  redis.call('DEL', LOCK)
else
  redis.call('ZREM', QUEUE, me)
  redis.call('ZREM', ALIVE, me)
end

local verdict
if ours and (not token or mine == token) then
  verdict = 'released'
elseif not token or mine > token then
  verdict = 'unknown'
elseif mine == token then
  verdict = flag == 'R' and 'released' or 'lost'
elseif mine > lost then
  verdict = 'released'
elseif mine == lost then
  verdict = 'lost'
else
  verdict = 'unknown'
end

-- Noted before the next grant, which would count us as lost.
if ours then
  if token then
    token, flag = math.max(token, mine), 'R'
  elseif mine > 0 then
    token, flag, lost = mine, 'R', mine - 1
  end
end
local next_holder
if ours or free then
  next_holder = hand_off()
end
if ours and token and not next_holder then
  write_record(0)
end
if ARGV[4] == '1' then
  redis.call('SET', TOMB, '1', 'PX', TOMB_TTL)
end
return verdict
