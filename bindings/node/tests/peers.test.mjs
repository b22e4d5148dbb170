// The locks for Redis that Node services use today, on the same key as ours: each excludes the other.

import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Mutex } from 'redis-semaphore'
import Redlock from 'redlock'
import { connect, LockTimeout } from '../index.mjs'
import { directory, LIMIT, Program, serverUrl, uniqueName, waitUntil } from './support.mjs'

const TTL = 600

/**
 * Each peer: what it puts before a name, one attempt, and how a service of its users waits. An
 * attempt gives what releases the lock, or null.
 */
const PEERS = {
  'redis-semaphore': {
    prefix: 'mutex:',
    attempt: async (redis, name) => {
      const once = { lockTimeout: LIMIT, acquireAttemptsLimit: 1 }
      const mutex = new Mutex(redis, name, once)
      return (await mutex.tryAcquire()) ? () => mutex.release() : null
    },
    program: `
const { Mutex } = require('redis-semaphore')
const mutex = new Mutex(redis, key.slice('mutex:'.length), { acquireTimeout: 100_000 })
await rounds(() => mutex.acquire(), () => mutex.release())
`,
  },
  redlock: {
    prefix: 'services:',
    attempt: async (redis, name) => {
      const redlock = new Redlock([redis], { retryCount: 0 })
      try {
        const lock = await redlock.lock(`services:${name}`, LIMIT)
        return () => lock.unlock()
      } catch (error) {
        if (error instanceof Redlock.LockError) return null
        throw error
      }
    },
    program: `
const Redlock = require('redlock')
const redlock = new Redlock([redis], { retryCount: -1, retryDelay: 5, retryJitter: 5 })
await rounds(() => redlock.lock(key, 20_000), (lock) => lock.unlock())
`,
  },
}

for (const [peer, { prefix, attempt, program }] of Object.entries(PEERS)) {
  test(`g1 ${peer} and ours exclude each other`, { timeout: 60_000 }, async (t) => {
    const url = serverUrl('redis')
    const redis = new Redis(url)
    const client = await connect(url, { prefix })
    t.after(() => Promise.all([redis.quit(), client.close()]))
    const lock = client.lock(uniqueName(), { ttl: TTL })

    const lease = await lock.acquire()
    assert.equal(await attempt(redis, lock.name), null)
    await sleep(1.5 * TTL) // it would have it now if ours were not renewed
    assert.equal(await attempt(redis, lock.name), null)
    await lease.release()

    const release = await attempt(redis, lock.name)
    assert.equal(await lock.tryAcquire(), null)
    assert.equal(lock.tryAcquireSync(), null)
    await assert.rejects(lock.acquire({ timeout: 50 }), LockTimeout)
    assert.equal((await client.inspect(lock.name)).state, 'foreign')
    const waiting = lock.acquire({ timeout: LIMIT })
    await waitUntil(async () => (await client.inspect(lock.name)).queue.length === 1)
    await release()
    const next = await waiting
    assert.equal(await attempt(redis, lock.name), null)
    await next.release()
  })

  test(`g1 a fleet of ${peer} and ours loses no update`, { timeout: 120_000 }, async (t) => {
    const file = join(directory(t), 'counter')
    await writeFile(file, '0')
    const ours = `
const client = await fencelock.connect(url, { prefix: '' })
const lock = client.lock(key)
await rounds(() => lock.acquire(), (lease) => lease.release())
`
    const key = prefix + uniqueName()
    const programs = [ours, program, ours, program].map(
      (code) => new Program(t, FLEET + code, PACKAGE, serverUrl('redis'), key, file, `${ROUNDS}`),
    )
    // None has done its rounds before the last one begins.
    for (const program of programs) assert.equal(await program.line(), 'ready')
    for (const { process } of programs) process.stdin.write('go')
    for (const program of programs) await program.end()
    assert.equal(Number(await readFile(file, 'utf8')), programs.length * ROUNDS)
  })
}

const PACKAGE = new URL('../package.json', import.meta.url).href
const ROUNDS = 100

/** The counter is guarded by nothing but the lock: what two do at once is lost. */
const FLEET = `
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
const [place, url, key, file, count] = process.argv.slice(1)
const require = createRequire(place)
const { Redis } = require('ioredis')
const redis = new Redis(url)
async function rounds(acquire, release) {
  console.log('ready')
  await once(process.stdin, 'data')
  for (let round = 0; round < Number(count); round += 1) {
    const held = await acquire()
    const before = Number(await readFile(file, 'utf8'))
    await writeFile(file, String(before + 1))
    await release(held)
    await new Promise(setImmediate)
  }
  await redis.quit()
  process.stdin.unref()
}
`
