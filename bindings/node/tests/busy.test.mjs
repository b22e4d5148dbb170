// A busy host does not starve the watchdog, and a stopped one finds out first thing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, LockLost } from '../index.mjs'
import {
  BACKENDS,
  busy,
  LIMIT,
  lost,
  onEach,
  Program,
  SHARED,
  stop,
  waitUntil,
} from './support.mjs'

const TTL = 1200
const BUSY = 1.25 * TTL

onEach(BACKENDS, 'g2 a busy event loop does not stop renewals', async (_, url, name) => {
  const client = await connect(url)
  const other = await connect(url)
  const lock = client.lock(name, { ttl: TTL })
  await lock.using(async (lease) => {
    const { signal } = lease
    busy(BUSY)
    assert.ok(lease.held && !signal.aborted)
    // One native call that never returns to the loop.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY)
    assert.ok(lease.held)
    assert.equal((await other.inspect(name)).owner, lease.owner)
    lease.check()
  })
  const lease = lock.acquireSync()
  assert.equal(other.lock(name).tryAcquireSync(), null)
  busy(BUSY)
  assert.ok(lease.held)
  lease.releaseSync()
  await Promise.all([client.close(), other.close()])
})

test('g2 a loss shows although the event loop could not hear of it', async () => {
  const client = await connect('memory:')
  const lease = await client.lock('a', { ttl: 200, renew: false }).acquire()
  assert.ok(!lease.signal.aborted)
  busy(250)
  assert.ok(lease.lost && !lease.held)
  assert.ok(lease.signal.aborted)
  await client.close()
})

test('g2 a loss and its warning, which come together, both arrive', async (t) => {
  const warnings = []
  const listen = ({ message }) => warnings.push(message)
  process.on('warning', listen)
  t.after(() => process.off('warning', listen))
  const client = await connect('memory:')
  const take = async (_, number) => {
    const options = { ttl: 200 + number, renew: false } // one after the other
    const lease = await client.lock(`${number}`, options).acquire()
    return lost(lease)
  }
  await Promise.all(Array.from({ length: 400 }, take))
  await waitUntil(() => warnings.length === 400)
  await client.close()
})

test('g2 a listener that throws is the program`s affair, not ours', async (t) => {
  const code = `
process.setUncaughtExceptionCaptureCallback((error) => console.log(error.message))
const client = await fencelock.connect('memory:')
const lease = await client.lock('a', { ttl: 150, renew: false }).acquire()
lease.signal.addEventListener('abort', () => { throw new Error('mine') })
const keep = setInterval(() => {}, 1000)
lease.signal.addEventListener('abort', async () => {
  console.log(await client.lock('a').using(() => 'goes on'))
  clearInterval(keep)
})
`
  const program = new Program(t, code)
  const lines = [await program.line(), await program.line()]
  assert.deepEqual(lines.sort(), ['goes on', 'mine'])
  const { code: ended } = await program.ended
  assert.equal(ended, 0)
})

onEach(SHARED, 'g2 a stopped process says lost first thing', async (t, url, name) => {
  const code = `
const [url, name] = process.argv.slice(1)
const client = await fencelock.connect(url)
const lease = await client.lock(name, { ttl: 500 }).acquire()
let before = performance.now()
console.log(String(lease.token))
for (;;) {
  const now = performance.now()
  if (now - before > 1000) break
  before = now
}
// The very first look after the pause.
console.log(lease.held, lease.lost, lease.signal.aborted)
await lease.release().catch((error) => console.log(error.code))
`
  const client = await connect(url)
  const program = new Program(t, code, url, name)
  const token = BigInt(await program.line())
  stop(program.process)
  const started = performance.now()
  const lease = await client.lock(name).acquire({ timeout: LIMIT })
  assert.ok(lease.token > token)
  await sleep(Math.max(0, 1250 - (performance.now() - started)))
  program.process.kill('SIGCONT')
  assert.equal(await program.line(), 'false true true')
  assert.equal(await program.line(), 'LOST')
  assert.equal((await program.ended).code, 0)
  assert.match(program.errors, /FencelockWarning: lease lost/)
  assert.ok(lease.held)
  await lease.release()
  await client.close()
})

onEach(SHARED, 'a body that knows nothing of its loss is told at the end', async (_, url, name) => {
  const client = await connect(url)
  const lock = client.lock(name, { ttl: 300, renew: false })
  await assert.rejects(
    lock.using(() => busy(400)),
    LockLost,
  )
  await client.close()
})
