// Acquire and release of a free lock from Node: ours, the locks that Node has, and Rust, turn by
// turn in one run, as ratios.
//
// usage: peers.mjs BENCH OUT [--quick]
//
// BENCH is the program of this folder: its `spin` is the Rust figure. OUT is where node.md goes.

import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { connect } from '../../bindings/node/index.mjs'

const require = createRequire(new URL('../../bindings/node/package.json', import.meta.url))
const { Redis } = require('ioredis')
const { Mutex } = require('redis-semaphore')
const Redlock = require('redlock')

const [bench, out, quick] = process.argv.slice(2)
const url = process.env.FENCELOCK_TEST_REDIS_URL
const TTL = 30_000
/** Short, and many of them: so all that is compared happens within a fraction of a second. */
const TURN = 60
const ROUNDS = quick ? 10 : 100

const redis = new Redis(url)
await redis.ping()
const client = await connect(url)
const ours = client.lock('bench/node', { ttl: TTL })
const redlock = new Redlock([redis], { retryCount: 0 })

/** Each as its own manual shows it, with the same ttl, on a connection that is open. */
const CYCLES = {
  fencelock: async () => (await ours.acquire()).release(),
  'fencelock, blocking': async () => ours.acquireSync().releaseSync(),
  'redis-semaphore': async () => {
    const mutex = new Mutex(redis, 'bench/redis-semaphore', { lockTimeout: TTL })
    await mutex.acquire()
    await mutex.release()
  },
  redlock: async () => (await redlock.lock('bench/redlock', TTL)).unlock(),
}

/** Microseconds of each cycle of one turn. */
async function turn(cycle) {
  const times = []
  for (let number = 0; number < TURN; number += 1) {
    const started = performance.now()
    await cycle()
    times.push((performance.now() - started) * 1e3)
  }
  return times
}

/** Microseconds per cycle of the Rust API; what starting costs is in both runs and drops out. */
function rust() {
  const run = (cycles) => {
    const started = performance.now()
    execFileSync(bench, ['spin', '--cycles', `${cycles}`], { stdio: 'ignore' })
    return performance.now() - started
  }
  const [few, many] = [100, 1100]
  return ((run(many) - run(few)) * 1e3) / (many - few)
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]

const times = Object.fromEntries(Object.keys(CYCLES).map((name) => [name, []]))
const inRust = []
for (let round = 0; round <= ROUNDS; round += 1) {
  const names = Object.keys(CYCLES)
  if (round % 2) names.reverse()
  for (const name of names) {
    const found = await turn(CYCLES[name])
    if (round > 0) times[name].push(median(found)) // the first round warms up
  }
  if (round % 10 === 5) inRust.push(rust())
}
redis.disconnect()
await client.close()

const middle = { ...Object.fromEntries(Object.entries(times).map(([n, t]) => [n, median(t)])) }
middle.Rust = median(inRust)
const row = (name, other, target) => {
  const ratio = middle[name] / middle[other]
  const verdict = target === undefined ? '' : ratio <= target ? 'met' : 'MISSED'
  const figures = `${middle[name].toFixed(0)} against ${middle[other].toFixed(0)} µs`
  return `| Node, ${name} / ${other} | ${ratio.toFixed(2)} | ${target ? `≤ ${target}` : ''} | ${verdict} | ${figures} |`
}
const report = `## Acquire and release of a free lock, from Node ${process.versions.node}

| what | ratio | target | | median of a cycle |
|---|---|---|---|---|
${row('fencelock', 'redis-semaphore', 1)}
${row('fencelock', 'redlock', 1)}
${row('fencelock', 'Rust', 1.6)}
${row('fencelock, blocking', 'redis-semaphore', 1)}
${row('fencelock, blocking', 'Rust')}
`
mkdirSync(out, { recursive: true })
writeFileSync(join(out, 'node.md'), report)
console.log(report)
