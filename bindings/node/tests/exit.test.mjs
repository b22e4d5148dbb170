// The end of a process with something in flight: quick, quiet, code 0, and leases are released.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '../index.mjs'
import {
  BACKENDS,
  LIMIT,
  onEach,
  ownRedis,
  Program,
  SHARED,
  uniqueName,
  waitUntil,
} from './support.mjs'

const PRELUDE = `
import { setTimeout as sleep } from 'node:timers/promises'
const [url, name] = process.argv.slice(1)
// Registered before ours: it runs first.
process.once('exit', () => console.log(Date.now()))
const client = await fencelock.connect(url)
const lock = client.lock(name, { ttl: 10_000 })
const queued = async () => {
  while ((await client.inspect(name)).queue.length === 0);
}
`

// Leases are global: one that no code refers to any more may be collected, which is warned of.
const CASES = {
  'a held lease': 'globalThis.lease = await lock.acquire()',
  'a held lease that is watched': `
globalThis.lease = await lock.acquire()
lease.signal.addEventListener('abort', () => console.log('never'))
`,
  'a renewal': `
globalThis.leases = []
for (let n = 0; n < 200; n += 1) {
  leases.push(await client.lock(name + '/' + n, { ttl: 1500 }).acquire())
}
await sleep(500)
leases.push(await lock.acquire())
`,
  'a wait, and process.exit': `
globalThis.lease = await lock.acquire()
for (let n = 0; n < 3; n += 1) lock.acquire().catch(() => console.log('never'))
await queued()
process.exit()
`,
  'process.exit inside a block': 'await lock.using(() => process.exit())',
  'a wait that was aborted': `
globalThis.lease = await lock.acquire()
const abort = new AbortController()
const waiting = lock.acquire({ signal: abort.signal })
await queued()
abort.abort()
await waiting.catch(() => {})
`,
  'use at exit': `
const lease = await lock.acquire()
process.once('exit', () => {
  lease.releaseSync() // released already
  for (const late of [() => lock.acquireSync(), () => fencelock.connectSync('memory:')]) {
    try {
      late()
    } catch (error) {
      if (error instanceof fencelock.Closed) continue
    }
    console.error('it went on')
  }
  lock.acquire().catch(() => {})
  client.closeSync()
})
`,
  'an error that nobody handles, handled at last': `
process.setUncaughtExceptionCaptureCallback(() => process.exit(0))
globalThis.lease = await lock.acquire()
throw new Error('mine')
`,
}

for (const [what, code] of Object.entries(CASES)) {
  onEach(SHARED, `g7 exit with ${what} is quick, quiet, and releases`, async (t, url, name) => {
    const client = await connect(url)
    const program = new Program(t, PRELUDE + code, url, name)
    const began = Number(await program.line())
    const took = (await program.end()) - began
    assert.ok(took < 1000, `${took} ms`)
    await waitUntil(async () => (await client.inspect(name)).queue.length === 0)
    assert.equal((await client.inspect(name)).state, 'free')
    await client.close()
  })
}

onEach(BACKENDS, 'only a wait keeps the process alive', async (t, url, name) => {
  const code = `
const [url, name] = process.argv.slice(1)
const client = await fencelock.connect(url)
const lock = client.lock(name, { ttl: 1000, renew: false })
await lock.acquire()
await lock.acquire() // for a second, until the ttl is over
console.log('got it')
`
  const program = new Program(t, code, url, name)
  assert.equal(await program.line(), 'got it')
  assert.equal((await program.ended).code, 0)
  assert.match(program.errors, /FencelockWarning: lease lost/)
})

test('g2 a loss right before the end is still warned of', async (t) => {
  const code = `
const client = await fencelock.connect('memory:')
globalThis.lease = await client.lock('a', { ttl: 150, renew: false }).acquire()
while (!lease.lost); // the event loop hears of nothing any more
process.exit()
`
  for (let round = 0; round < 5; round += 1) {
    const program = new Program(t, code)
    assert.equal((await program.ended).code, 0)
    assert.match(program.errors, /FencelockWarning: lease lost/)
  }
})

test('g7 an exit is quick although the server is silent', { timeout: 60_000 }, async (t) => {
  const { url, frozen } = await ownRedis(t)
  const code = `${PRELUDE}
globalThis.lease = await lock.acquire()
lock.acquire().catch(() => {})
await queued()
console.log('ready')
process.stdin.once('data', () => process.exit())
`
  const program = new Program(t, code, url, uniqueName())
  assert.equal(await program.line(), 'ready')
  await frozen(async () => {
    program.process.stdin.write('go')
    const began = Number(await program.line())
    const took = (await program.end()) - began
    assert.ok(took < 500 + 500, `${took} ms`)
  })
})

onEach(SHARED, 'g4 Ctrl-C ends a wait and a blocking wait at once', async (t, url, name) => {
  const client = await connect(url)
  for (const wait of ['await lock.acquire()', 'lock.acquireSync()']) {
    const lock = client.lock(name)
    const lease = await lock.acquire()
    const code = `
const [url, name] = process.argv.slice(1)
const client = await fencelock.connect(url)
const lock = client.lock(name, { ttl: 500 })
console.log('ready')
${wait}
`
    const program = new Program(t, code, url, name)
    await program.line()
    await waitUntil(async () => (await client.inspect(name)).queue.length === 1)
    const began = performance.now()
    program.process.kill('SIGINT')
    assert.equal((await program.ended).signal, 'SIGINT')
    assert.ok(performance.now() - began < 2000)
    assert.equal(program.errors, '')
    // Killed, it could not withdraw: it is passed over.
    await lease.release()
    await lock.using(() => {}, { timeout: LIMIT })
  }
  await client.close()
})
