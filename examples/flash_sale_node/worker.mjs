// A worker: buys one unit after the other until there are none left. This file is the example; the
// others only start workers and count what they did.

import { setTimeout as sleep } from 'node:timers/promises'
// In a project of your own: from 'fencelock'.
import { connect, LockLost } from '../../bindings/node/index.mjs'
import { Remote } from './store.mjs'

/** What everybody has to lock who sells product 123. */
const LOCK = 'product/123'

/** Waits for the sale to open, then buys until everything is sold. */
async function run({ url, worker, opensAt, ttl, locked, crashAfter }) {
  const client = await connect(url)
  const lock = client.lock(LOCK, { ttl })
  const store = new Remote(process)
  const now = () => Math.max(0, Date.now() - opensAt)

  await sleep(Math.max(0, opensAt - Date.now()))
  let outcome
  for (let turn = 0; outcome !== 'sold out'; turn += 1) {
    if (turn === crashAfter) await holdForEver(lock, worker, now)
    const bought = await (locked
      ? buyOne(lock, store, worker, now)
      : buyWithoutLock(store, worker, now))
    process.send({ turn: bought })
    outcome = bought.outcome
  }
  await client.close()
  process.disconnect()
}

/** Buys one unit under the lock. */
async function buyOne(lock, store, worker, now) {
  const asked = now()
  const turn = { worker, outcome: 'lost', token: 0n, asked, start: asked, end: asked }
  try {
    await lock.using(async (lease) => {
      Object.assign(turn, { token: lease.token, start: now() })
      try {
        turn.outcome = await sellOneUnit(store, worker, lease)
      } finally {
        turn.end = now()
      }
    })
  } catch (error) {
    // From inside the section: nothing was written. From its end: the order stands, for had anybody
    // with a higher token been at the store before it, the store had refused it.
    if (!(error instanceof LockLost)) throw error
  }
  return turn
}

/**
 * The section that must not run twice at the same time. It reads the stock, checks it, and writes it
 * back less one. Everything that can go wrong without a lock goes wrong between the read and the
 * write.
 */
async function sellOneUnit(store, worker, lease) {
  const token = lease?.token
  const left = await store.readStock(token)
  if (left === 0) return 'sold out'
  // If the lease was lost by now, somebody else may be selling this very unit: this throws LockLost,
  // so that nothing is written.
  lease?.check()
  // We may still be paused right here, for longer than our lease lasts, and no lock can help that.
  // So the order carries the fencing token, and the store refuses it if somebody with a higher one
  // has been there meanwhile.
  const taken = await store.placeOrder(worker, token, left - 1)
  return taken ? 'sold' : 'refused'
}

/** The same without the lock, to see what it prevents. */
async function buyWithoutLock(store, worker, now) {
  const start = now()
  const outcome = await sellOneUnit(store, worker)
  return { worker, outcome, token: 0n, asked: start, start, end: now() }
}

/** Takes the lock and never gives it back, as a worker does that crashes. */
async function holdForEver(lock, worker, now) {
  const asked = now()
  const { token } = await lock.acquire()
  const start = now()
  process.send({ turn: { worker, outcome: 'crashed', token, asked, start, end: start } })
  await new Promise(() => setInterval(() => {}, 1000)) // until we are killed
}

await run(JSON.parse(process.argv[2]))
