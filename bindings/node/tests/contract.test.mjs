// The verbs on every backend, named after the guarantee that a test checks.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import * as fencelock from '../index.mjs'
import { BACKENDS, LIMIT, lost, onEach, ownRedis, uniqueName, waitUntil } from './support.mjs'

const { connect, LockLost, LockTimeout, Closed, Unavailable } = fencelock

async function clients(t, url) {
  const both = await Promise.all([connect(url), connect(url)])
  t.after(() => Promise.all(both.map((client) => client.close())))
  return both
}

onEach(BACKENDS, 'g1 one lease at a time, and the waiter gets it', async (t, url, name) => {
  const [client, other] = await clients(t, url)
  const lease = await client.lock(name).acquire()
  assert.equal(await other.lock(name).tryAcquire(), null)
  await assert.rejects(other.lock(name).acquire({ timeout: 30 }), LockTimeout)
  await assert.rejects(other.lock(name).acquire({ timeout: 0 }), LockTimeout)
  const waiting = other.lock(name).acquire({ timeout: LIMIT })
  await waitUntil(async () => (await client.inspect(name)).queue.length === 1)
  await lease.release()
  const next = await waiting
  assert.ok(next.held && !lease.held)
  assert.ok(next.token > lease.token)
  assert.equal(typeof next.token, 'bigint')
  await next.release()
  await next.release() // of no effect
  assert.equal((await client.inspect(name)).state, 'free')
})

onEach(BACKENDS, 'g1 tasks that share a lock object exclude each other', async (t, url, name) => {
  const [client] = await clients(t, url)
  const lock = client.lock(name)
  let inside = 0
  let last = 0n
  const work = async (lease) => {
    inside += 1
    assert.equal(inside, 1)
    assert.ok(lease.token > last)
    last = lease.token
    await sleep(1)
    inside -= 1
  }
  await Promise.all(Array.from({ length: 20 }, () => lock.using(work, { timeout: LIMIT })))
})

onEach(BACKENDS, 'g1 the blocking form is the same lock', async (t, url, name) => {
  const [, other] = await clients(t, url)
  const client = fencelock.connectSync(url)
  const lock = client.lock(name)
  const lease = lock.acquireSync({ timeout: 1000 })
  assert.ok(lease.held && lease.remaining > 0)
  assert.equal(lock.tryAcquireSync(), null)
  assert.throws(() => lock.acquireSync({ timeout: 20 }), LockTimeout)
  assert.throws(() => lock.acquireSync({ timeout: 0 }), LockTimeout)
  assert.equal(await other.lock(name).tryAcquire(), null)
  lease.releaseSync()
  lease.releaseSync()
  assert.throws(() => lease.check(), LockLost)
  lock.tryAcquireSync().releaseSync()
  client.closeSync()
  client.closeSync()
  assert.throws(() => lock.acquireSync(), Closed)
})

onEach(BACKENDS, 'g2 a fixed lease ends at its ttl, which is told', async (t, url, name) => {
  const [client, other] = await clients(t, url)
  const lease = await client.lock(name, { ttl: 400, renew: false }).acquire()
  const { signal } = lease
  assert.equal(signal, lease.signal)
  assert.ok(lease.held && !lease.lost && !signal.aborted)
  assert.ok(lease.remaining > 0 && lease.remaining <= 400)
  lease.check()
  const next = await other.lock(name).acquire({ timeout: LIMIT })
  await lost(lease)
  assert.ok(signal.reason instanceof LockLost)
  assert.ok(lease.lost && !lease.held)
  assert.equal(lease.remaining, 0)
  assert.throws(() => lease.check(), LockLost)
  await assert.rejects(lease.renew(), LockLost)
  await assert.rejects(lease.release(), LockLost)
  await next.release()
})

onEach(BACKENDS, 'g2 renewing sets a fixed lease to a full ttl', async (t, url, name) => {
  const [client] = await clients(t, url)
  const lease = await client.lock(name, { ttl: 5000, renew: false }).acquire()
  await sleep(100)
  const before = lease.remaining
  await lease.renew()
  // What is certain in a session of ZooKeeper grows with its next answers only.
  if (!url.startsWith('zookeeper')) assert.ok(lease.remaining > before)
  assert.ok(lease.held)
  await lease.release()
})

onEach(BACKENDS, 'g2 the watchdog renews, max_hold ends that', async (t, url, name) => {
  const [client] = await clients(t, url)
  const lease = await client.lock(name, { ttl: 1200, maxHold: 2700 }).acquire()
  await sleep(1500)
  assert.ok(lease.held)
  await waitUntil(() => lease.lost)
  assert.ok(lease.signal.aborted)
})

onEach(BACKENDS, 'g6 a force release is told to the former holder', async (t, url, name) => {
  const [client, other] = await clients(t, url)
  const lease = await client.lock(name).acquire()
  assert.equal(await other.forceRelease(name), true)
  assert.equal(await other.forceRelease(name), false)
  await assert.rejects(lease.renew(), LockLost)
  assert.ok(lease.lost && lease.signal.aborted)
})

onEach(BACKENDS, 'inspect and list show the holder and who waits', async (t, url, name) => {
  const [client, other] = await clients(t, url)
  const lease = await client.lock(name, { metadata: 'the holder' }).acquire()
  const waiting = other.lock(name, { metadata: 'a waiter' }).acquire({ timeout: LIMIT })
  await waitUntil(async () => (await client.inspect(name)).queue.length === 1)
  const info = await client.inspect(name)
  assert.deepEqual([info.name, info.state, info.owner], [name, 'held', lease.owner])
  assert.deepEqual([info.token, info.metadata], [lease.token, 'the holder'])
  // ZooKeeper cannot tell until when a session holds it.
  const known = !url.startsWith('zookeeper')
  assert.ok(known ? info.ttlLeftMs > 0 && info.ttlLeftMs <= 30_000 : info.ttlLeftMs === null)
  assert.equal(info.queue[0].metadata, 'a waiter')
  assert.ok(info.queue[0].waitingMs >= 0)
  assert.ok((await client.list()).some((one) => one.name === name))
  await lease.release()
  await (await waiting).release()
  const free = { state: 'free', owner: null, token: null, ttlLeftMs: null, metadata: null }
  const { state, owner, token, ttlLeftMs, metadata } = await client.inspect(name)
  assert.deepEqual({ state, owner, token, ttlLeftMs, metadata }, free)
})

onEach(BACKENDS, 'g7 close during 20 concurrent calls ends them all', async (t, url, name) => {
  const client = await connect(url)
  const [other] = await clients(t, url)
  const lease = await client.lock(name).acquire()
  const calls = Array.from({ length: 20 }, (_, n) => {
    if (n % 4 === 0) return client.inspect(name)
    if (n % 4 === 1) return client.lock(`${name}/${n}`).acquire()
    return client.lock(name).acquire()
  })
  const ended = Promise.allSettled(calls)
  const started = performance.now()
  await Promise.all([client.close(), client.close()])
  assert.ok(performance.now() - started < 2000)
  for (const { status, reason } of await ended) {
    assert.ok(status === 'fulfilled' || reason instanceof Closed, reason)
  }
  assert.ok(client.closed && !lease.held && !lease.lost)
  await assert.rejects(client.lock(name).acquire(), Closed)
  await assert.rejects(client.inspect(name), Closed)
  await lease.release() // the close did it
  await waitUntil(async () => (await other.inspect(name)).state === 'free')
  assert.deepEqual((await other.inspect(name)).queue, [])
})

test('g10 waits are limited whatever the server does', { timeout: 60_000 }, async (t) => {
  const { url, frozen } = await ownRedis(t)
  const client = await connect(url, { requestTimeout: 700 })
  const lock = client.lock(uniqueName())
  await frozen(async () => {
    const started = performance.now()
    await assert.rejects(lock.tryAcquire(), Unavailable)
    await assert.rejects(lock.acquire({ timeout: 0 }), fencelock.FencelockError)
    assert.ok(performance.now() - started < 2 * (700 + 50) + 500)
    const again = performance.now()
    await assert.rejects(lock.acquire({ timeout: 200 }), LockTimeout)
    const took = performance.now() - again
    assert.ok(took >= 200 && took < 200 + 50 + 500, `${took}`)
  })
  await waitUntil(async () => (await client.inspect(lock.name)).state === 'free')
  assert.deepEqual((await client.inspect(lock.name)).queue, [])
  await client.close()
})

test('g2 a frozen server means lost by the deadline', { timeout: 60_000 }, async (t) => {
  const { url, frozen } = await ownRedis(t)
  const client = await connect(url)
  const lock = client.lock(uniqueName(), { ttl: 500 })
  const lease = await lock.acquire()
  await frozen(async () => {
    const started = performance.now()
    await lost(lease)
    assert.ok(performance.now() - started < 500 + 500)
    assert.ok(!lease.held)
    // Without asking anybody.
    const release = performance.now()
    await assert.rejects(lease.release(), LockLost)
    assert.ok(performance.now() - release < 1000)
  })
  await lock.using(() => {}, { timeout: LIMIT })
  await client.close()
})

test('nobody listening is told at once', async () => {
  const started = performance.now()
  await assert.rejects(connect('redis://127.0.0.1:1/', { connectTimeout: 2000 }), Unavailable)
  assert.ok(performance.now() - started < 2000 + 500)
})

test('g7 a second close waits for the first', async (t) => {
  const { url } = await ownRedis(t)
  const [client, other] = [await connect(url), await connect(url)]
  for (let number = 0; number < 50; number += 1) await client.lock(`a${number}`).acquire()
  const first = client.close()
  await client.close()
  assert.deepEqual(await other.list(), [])
  await first
  await other.close()
})
