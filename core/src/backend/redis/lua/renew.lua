-- Renews one lease. Never creates the lock again, not even when nobody has it.
-- KEYS: lock, token record.  ARGV: 1 owner value, 2 ttl ms, 3 token
-- Returns 1 = ours for a full ttl, 0 = not ours.
-- Calls: 3.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
local token, record_ttl = tonumber(ARGV[3]), 600000 + ARGV[2]
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if redis.call('PEXPIRE', KEYS[2], record_ttl) == 0 then
  local text = string.format('%.0f H %.0f', token, token - 1)
  redis.call('SET', KEYS[2], text, 'PX', record_ttl)
end
return 1
