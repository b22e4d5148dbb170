// Memory stays flat, and what is collected as garbage is not released.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { connect } from '../index.mjs'
import { uniqueName, waitUntil } from './support.mjs'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')

/** 1 000 000 for the long run. */
const CYCLES = Number(process.env.FENCELOCK_TEST_MEMORY_CYCLES ?? 30_000)

/** One after the other they would mostly wait for threads to wake up. */
const AT_ONCE = 10

async function resident() {
  for (let time = 0; time < 3; time += 1) {
    collect()
    await new Promise(setImmediate) // finalizers run then
  }
  return process.memoryUsage().rss / 2 ** 20
}

const CYCLE = {
  'acquire and release': async (lock) => (await lock.acquire()).release(),
  'the blocking form': async (lock) => lock.acquireSync().releaseSync(),
  'using, with a signal each way': (lock) =>
    lock.using(({ signal }) => assert.ok(!signal.aborted), {
      signal: new AbortController().signal,
    }),
}

for (const [what, cycle] of Object.entries(CYCLE)) {
  test(`memory is flat over ${what}`, { timeout: 1_200_000 }, async (t) => {
    const client = await connect('memory:')
    const run = async (cycles) => {
      for (let number = 0; number < cycles; number += AT_ONCE) {
        const one = (_, nth) => cycle(client.lock(`n/${number + nth}`))
        await Promise.all(Array.from({ length: AT_ONCE }, one))
        if (number % 500 === 0) await new Promise(setImmediate)
      }
      return resident()
    }
    // Pools, caches and the young generation grow to their size at first.
    await run(CYCLES / 6)
    const before = await run(CYCLES / 6)
    const after = await run(CYCLES)
    const change = `from ${before.toFixed(1)} to ${after.toFixed(1)} MiB in ${CYCLES} cycles`
    t.diagnostic(change)
    assert.ok(after - before < 32, change)
    await client.close()
  })
}

test('g7 a lease that is collected as garbage is held on, and a warning names it', async () => {
  const client = await connect('memory:')
  const name = uniqueName()
  const warned = once(process, 'warning')
  const take = async () => {
    const { signal } = await client.lock(name, { ttl: 300 }).acquire()
    return signal // what only watches does not keep it
  }
  const signal = await take()
  const over = new AbortController()
  let message
  warned.then(([warning]) => {
    message = warning.message
    over.abort()
  })
  await waitUntil(async () => {
    await resident()
    return message !== undefined
  })
  assert.match(message, /nobody refers to any more/)
  assert.ok(message.includes(name))
  await sleep(450)
  assert.equal((await client.inspect(name)).state, 'held')
  assert.ok(!signal.aborted)
  await client.close()
})
