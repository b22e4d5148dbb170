// Locks driven from Node, ours and those it is compared with, turn by turn as the benchmark asks.
//
// usage: peers.mjs URL
//
// One line of JSON in, `["cycle", lock, n]`, gives one line out: nanoseconds of each of n cycles of
// acquire and release.

import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { connect } from '../../bindings/node/index.mjs'

const require = createRequire(new URL('../../bindings/node/package.json', import.meta.url))
const { Redis } = require('ioredis')
const { Mutex } = require('redis-semaphore')
const Redlock = require('redlock')

const [url] = process.argv.slice(2)
const TTL = 30_000

const client = await connect(url)
const ours = client.lock('bench/node', { ttl: TTL })
const blocking = client.lock('bench/node-sync', { ttl: TTL })
const redis = new Redis(url)
const redlock = new Redlock([redis], { retryCount: 0 })

/** Each as its own manual shows it, with the same ttl, on a connection that is open. */
const CYCLES = {
  fencelock: async () => (await ours.acquire()).release(),
  'fencelock-sync': async () => blocking.acquireSync().releaseSync(),
  'redis-semaphore': async () => {
    const mutex = new Mutex(redis, 'bench/redis-semaphore', { lockTimeout: TTL })
    await mutex.acquire()
    await mutex.release()
  },
  redlock: async () => (await redlock.lock('bench/redlock', TTL)).unlock(),
}

for await (const line of createInterface({ input: process.stdin })) {
  const [what, name, count] = JSON.parse(line)
  if (what !== 'cycle') throw new Error(`${what} is unknown`)
  const times = []
  for (let number = 0; number < count; number += 1) {
    const started = process.hrtime.bigint()
    await CYCLES[name]()
    times.push(Number(process.hrtime.bigint() - started))
  }
  console.log(JSON.stringify(times))
}
redis.disconnect()
await client.close()
