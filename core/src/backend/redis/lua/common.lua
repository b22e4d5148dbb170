-- Put before each script that can give the lock to somebody.
-- KEYS: lock, queue, signs of life, token record, tombstone (all in one cluster slot)
-- ARGV: 1 owner value (or, in force_release, the value to end), 2 what channels begin with
--
-- lock            string, owner value of the holder:
--                 fl1:<32 hex owner id>:<16 hex client id>:<ttl ms>[:text]
-- queue           sorted set, owner value -> order = max(last order + 1, server microseconds)
-- signs of life   sorted set, owner value -> server ms until which a contender that looked again
--                 counts as alive; before it does, its order is its sign of life
-- token record    string, "token flag lost": flag H = the last grant has not been given back,
--                 R = it was; lost = newest token known to have ended without being given back
-- tombstone       exists = this owner id never comes back
--
-- All times are the server's. Reads stand before writes wherever a key of another type could
-- raise an error, and the first write of release is one that a full server still allows.
local LOCK, QUEUE, ALIVE, RECORD, TOMB = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local HELPER_TTL, RECORD_TTL, TOMB_TTL = 10000, 600000, 120000
local CLAIM_WINDOW, LIFE_SPAN = 5000, 6000
local MOST_DEAD = 100

-- Client id and ttl of an owner value; nil for a value of another shape.
local function shape(value)
  local owner, client, ttl, rest = string.match(value, '^fl1:(%x+):(%x+):(%d+)(.?)')
  if owner and #owner == 32 and #client == 16 and (rest == '' or rest == ':') then
    return client, tonumber(ttl)
  end
end

-- Server time in microseconds, asked for once.
local micros
local function now()
  if not micros then
    local time = redis.call('TIME')
    micros = time[1] * 1000000 + time[2]
  end
  return micros
end

-- The token record; token stays nil while there is none.
local token, flag, lost
local function read_record()
  local text = redis.call('GET', RECORD)
  if text then
    local t, f, l = string.match(text, '^(%d+) (%u) (%d+)$')
    token, flag, lost = tonumber(t), f, tonumber(l)
  end
end

-- %.0f because Lua's own conversion would round tokens.
local function write_record(lease_ttl)
  local text = string.format('%.0f %s %.0f', token, flag, lost)
  redis.call('SET', RECORD, text, 'PX', RECORD_TTL + lease_ttl)
end

-- Grants the lock, which must be free, for ttl ms. Read the record before.
local function mint(owner, ttl)
  if not token then
    token = now()
    lost = token - 1
  else
    if flag == 'H' then
      lost = token
    end
    token = math.max(token + 1, now())
  end
  flag = 'H'
  redis.call('SET', LOCK, owner, 'PX', ttl, 'NX')
  write_record(ttl)
  return token
end

-- Gives the lock, which must be free, to the first live contender of the queue, and drops the
-- dead ones before it, at most 100 in one call. `me`, if it comes to it, is alive because it
-- asks right now, gets `my_ttl` and no message; anybody else gets a claim window only, so that
-- one that died unnoticed blocks the others no longer than that. Returns the new holder or nil.
local function hand_off(me, my_ttl)
  for _ = 1, MOST_DEAD do
    local head = redis.call('ZPOPMIN', QUEUE)
    local owner, order = head[1], tonumber(head[2])
    if not owner then
      return nil
    end
    if owner == me then
      redis.call('ZREM', ALIVE, me)
      mint(me, my_ttl)
      return me
    end
    local client, ttl = shape(owner)
    local alive = client and order + math.min(ttl, LIFE_SPAN) * 1000 > now()
    if client and not alive then
      local sign = redis.call('ZSCORE', ALIVE, owner)
      alive = sign and tonumber(sign) * 1000 > now()
    end
    redis.call('ZREM', ALIVE, owner)
    if alive then
      mint(owner, math.min(ttl, CLAIM_WINDOW))
      redis.call('PUBLISH', ARGV[2] .. client, owner .. string.format(' %.0f', token))
      return owner
    end
  end
end
