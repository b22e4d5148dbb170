// Signals: in, to end a wait; and cancelled waits leave nothing behind (G7).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../index.mjs'
import { BACKENDS, LIMIT, onEach, ownRedis, uniqueName, waitUntil } from './support.mjs'

onEach(BACKENDS, 'g7 an aborted acquire rejects with the reason', async (_, url, name) => {
  const client = await connect(url)
  const lock = client.lock(name)
  const lease = await lock.acquire()
  for (const timeout of [undefined, 60_000]) {
    const abort = new AbortController()
    const heard = []
    abort.signal.onabort = () => heard.push('mine')
    const waiting = lock.acquire({ timeout, signal: abort.signal })
    await waitUntil(async () => (await client.inspect(name)).queue.length === 1)
    const reason = { any: 'value' }
    abort.abort(reason)
    await assert.rejects(waiting, (error) => error === reason)
    assert.deepEqual(heard, ['mine'])
    assert.deepEqual((await client.inspect(name)).queue, [])
  }
  await assert.rejects(lock.acquire({ signal: AbortSignal.timeout(30) }), { name: 'TimeoutError' })
  await assert.rejects(lock.acquire({ signal: AbortSignal.abort() }), { name: 'AbortError' })
  await assert.rejects(lock.acquire({ timeout: 0, signal: new AbortController().signal }), {
    code: 'TIMEOUT',
  })
  assert.deepEqual((await client.inspect(name)).queue, [])
  await lease.release()
  await client.close()
})

test('g7 a listener cannot keep an abort from the acquire', { timeout: 60_000 }, async () => {
  const client = await connect('memory:')
  const lease = await client.lock('a').acquire()
  const abort = new AbortController()
  abort.signal.addEventListener('abort', (event) => event.stopImmediatePropagation())
  const waiting = client.lock('a').acquire({ signal: abort.signal })
  await waitUntil(async () => (await client.inspect('a')).queue.length === 1)
  abort.abort()
  await assert.rejects(waiting, { name: 'AbortError' })
  await lease.release()
  await client.close()
})

test('a signal that is aborted later does nothing to a lease', async () => {
  const client = await connect('memory:')
  const abort = new AbortController()
  const lease = await client.lock('a').acquire({ signal: abort.signal })
  abort.abort()
  await client.inspect('a')
  assert.ok(lease.held)
  await lease.release()
  await client.close()
})

test('g7 an attempt at a silent server ends when it is aborted', { timeout: 60_000 }, async (t) => {
  const { url, frozen } = await ownRedis(t)
  const client = await connect(url, { requestTimeout: 20_000 })
  const lock = client.lock(uniqueName())
  await frozen(async () => {
    const started = performance.now()
    for (const timeout of [0, undefined]) {
      const signal = AbortSignal.timeout(50)
      await assert.rejects(lock.acquire({ timeout, signal }), { name: 'TimeoutError' })
    }
    assert.ok(performance.now() - started < 2 * (50 + 50) + 1000)
  })
  await waitUntil(async () => (await client.inspect(lock.name)).state === 'free')
  await client.close()
})

/**
 * 300 acquires, each aborted after some random time. Somebody else gets in then, although a lease
 * that was left behind would last for a minute.
 */
async function abortAtRandomMoments(url, prefix) {
  const client = await connect(url)
  const lock = (number) => client.lock(`${prefix}/${number % 5}`, { ttl: 60_000 })
  let got = 0
  const one = async (number) => {
    const abort = new AbortController()
    const acquiring = lock(number).acquire({ signal: abort.signal })
    const moment = [0, 0.5, 2, 5, 20][Math.floor(Math.random() * 5)] * Math.random()
    if (moment < 0.1) await new Promise(setImmediate)
    else await sleep(moment)
    abort.abort()
    const lease = await acquiring.catch((error) => assert.equal(error, abort.signal.reason))
    if (lease === undefined) return
    got += 1
    await lease.release()
  }
  // Two of the five names are held meanwhile: there, the aborted ones are contenders.
  const held = [await lock(0).acquire(), await lock(1).acquire()]
  for (let round = 0; round < 30; round += 1) {
    await Promise.all(Array.from({ length: 10 }, (_, number) => one(number)))
  }
  assert.ok(got < 300)
  for (const lease of held) await lease.release()

  const other = await connect(url)
  for (let number = 0; number < 5; number += 1) {
    const name = lock(number).name
    await other.lock(name).using(() => {}, { timeout: LIMIT })
    await waitUntil(async () => {
      const { state, queue } = await other.inspect(name)
      return state === 'free' && queue.length === 0
    })
  }
  await other.close()
  return client
}

onEach(
  BACKENDS.filter((backend) => backend !== 'redis'),
  'g7 300 acquires aborted at random moments leave nothing',
  async (_, url, name) => {
    const client = await abortAtRandomMoments(url, name)
    await client.close()
  },
)

/** Keys that are neither token records nor tombstones; those two must have an expiry. */
async function leftovers(redis) {
  const left = []
  for await (const keys of redis.scanStream()) {
    for (const key of keys) {
      const kind = key.split('~fl1:').at(-1).slice(0, 2)
      if (!['t:', 'x:'].includes(kind) || (await redis.pttl(key)) === -1) left.push(key)
    }
  }
  return left
}

const ON_REDIS = 'g7 300 acquires aborted at random moments leave nothing [redis]'
test(ON_REDIS, { timeout: 120_000 }, async (t) => {
  const { url, redis } = await ownRedis(t)
  const client = await abortAtRandomMoments(url, 'cancel')
  await waitUntil(async () => (await leftovers(redis)).length === 0)

  // And nobody renews or looks any more.
  const monitor = await redis.monitor()
  const seen = []
  monitor.on('monitor', (_, command) => seen.push(command))
  await sleep(2000)
  monitor.disconnect()
  assert.deepEqual(seen, [])
  assert.deepEqual(await leftovers(redis), [])
  await client.close()
})
