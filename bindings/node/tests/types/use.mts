// Compiled, never run: what users may write, and what they may not.

// Compiled, never run: what users may write, and what they may not.

import fencelock, {
  type Client,
  connect,
  connectSync,
  type ErrorCode,
  FencelockError,
  type Lease,
  type LockInfo,
  LockLost,
  LockTimeout,
} from 'fencelock'

const client: Client = await connect('redis://127.0.0.1/', { requestTimeout: 500, prefix: 'a:' })
const lock = client.lock('orders/42', { ttl: 30_000, renew: true, maxHold: 60_000 })

const given: number = await lock.using(
  async (lease) => {
    await fetch('http://127.0.0.1/', { signal: lease.signal })
    lease.check()
    return 7
  },
  { timeout: 5000, signal: AbortSignal.timeout(1000) },
)
const plain: string = await lock.using(() => 'a')

async function block(): Promise<bigint> {
  await using inner = await connect()
  await using lease = await inner.lock('a').acquire({ timeout: 5000 })
  using blocking = inner.lock('b').acquireSync({ timeout: 5000 })
  return lease.token + blocking.token
}

const maybe: Lease | null = await lock.tryAcquire()
if (maybe?.held && !maybe.lost && maybe.remaining > 0) await maybe.renew()
maybe?.releaseSync()

try {
  await lock.acquire({ timeout: 0 })
} catch (error) {
  if (error instanceof LockTimeout) {
    const code: 'TIMEOUT' = error.code
    console.log(code)
  } else if (error instanceof LockLost || error instanceof FencelockError) {
    const code: ErrorCode = error.code
    console.log(code)
  }
}

const info: LockInfo = await client.inspect('a')
const shown: [bigint | null, number | null, string[]] = [
  info.token,
  info.ttlLeftMs,
  info.queue.map((waiter) => waiter.owner),
]
console.log(given, plain, await block(), shown, fencelock.version, connectSync('memory:').closed)

// @ts-expect-error: a lock is made by a client
new fencelock.Lock()
// @ts-expect-error: milliseconds, not a text
client.lock('a', { ttl: '30s' })
// @ts-expect-error: no such option
lock.acquire({ timeoutMs: 5 })
// @ts-expect-error: a blocking wait cannot be aborted
lock.acquireSync({ signal: AbortSignal.abort() })
// @ts-expect-error: no such layout
connect('zookeeper://a', { nodeLayout: 'other' })
// @ts-expect-error: final
client.closed = true
