// worker_threads: each has clients of its own, in one process.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { connect } from '../index.mjs'
import { BACKENDS, LIMIT, onEach, Program, uniqueName, waitUntil } from './support.mjs'

const PACKAGE = new URL('../index.mjs', import.meta.url)

/** A worker that runs `code`; it answers with `say`. */
function start(t, code, ...data) {
  const source = `
import { parentPort, workerData } from 'node:worker_threads'
import * as fencelock from '${PACKAGE}'
const say = (text) => parentPort.postMessage(text)
const [url, name] = workerData
${code}
`
  const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`)
  const worker = new Worker(url, { workerData: data })
  t.after(() => worker.terminate())
  return worker
}

/** Not `once(…)` of node:events, which an error of the worker would reject. */
const heard = (worker) => new Promise((resolve) => worker.once('message', resolve))

/** Whether nobody holds the lock or waits for it. */
const isFree = (client, name) => async () => {
  const { state, queue } = await client.inspect(name)
  return state === 'free' && queue.length === 0
}

onEach(BACKENDS, 'g1 workers and the main thread exclude each other', async (t, url, name) => {
  const counter = new Int32Array(new SharedArrayBuffer(8))
  const code = `
const counter = workerData[2]
const client = await fencelock.connect(url)
const lock = client.lock(name)
for (let round = 0; round < 25; round += 1) {
  await lock.using(async () => {
    const before = counter[0] // on purpose not atomic
    await new Promise(setImmediate)
    counter[0] = before + 1
  })
}
say('done')
`
  const workers = [1, 2, 3].map(() => start(t, code, url, name, counter))
  await Promise.all(workers.map(heard))
  assert.equal(counter[0], 75)
  // Its clients do not keep a worker alive.
  await Promise.all(workers.map((worker) => worker.threadId === -1 || once(worker, 'exit')))
  const client = await connect(url)
  assert.ok(await isFree(client, name)())
  await client.close()
})

onEach(BACKENDS, 'g7 the end of a worker releases its leases', async (t, url, name) => {
  const client = await connect(url)
  const ends = {
    'it just ends': 'parentPort.unref()',
    'process.exit': 'setImmediate(() => process.exit())',
    'an error': 'setImmediate(() => { throw new Error("mine") })',
  }
  for (const [what, end] of Object.entries(ends)) {
    const code = `
const client = await fencelock.connect(url)
globalThis.lease = await client.lock(name, { ttl: 60_000 }).acquire()
say('held')
${end}
`
    const worker = start(t, code, url, name)
    worker.on('error', () => {})
    assert.equal(await heard(worker), 'held', what)
    await waitUntil(isFree(client, name))
  }
  await client.close()
})

onEach(BACKENDS, 'g7 a terminated worker leaves nothing behind', async (t, url, name) => {
  const client = await connect(url)
  const code = `
const client = await fencelock.connect(url)
const work = async (n) => {
  for (;;) await client.lock(name + '/' + n % 3, { ttl: 60_000 }).using(() => {})
}
for (let n = 0; n < 10; n += 1) work(n)
say('working')
`
  for (let round = 0; round < 10; round += 1) {
    const worker = start(t, code, url, name)
    await heard(worker)
    await sleep(Math.random() * 20)
    await worker.terminate()
  }
  for (let n = 0; n < 3; n += 1) await waitUntil(isFree(client, `${name}/${n}`))
  await client.close()
})

test('g7 20 workers close their clients during calls', { timeout: 60_000 }, async (t) => {
  const [url, name] = [`memory:${uniqueName().replace('/', '-')}`, 'a']
  const code = `
const client = await fencelock.connect(url)
const calls = Array.from({ length: 20 }, () => client.lock(name).acquire())
const ended = Promise.allSettled(calls)
await client.inspect(name)
await client.close()
const wrong = (await ended).filter(({ reason }) => reason && reason.code !== 'CLOSED')
say(wrong.length)
`
  const workers = Array.from({ length: 20 }, () => start(t, code, url, name))
  assert.deepEqual(await Promise.all(workers.map(heard)), Array(20).fill(0))
  const client = await connect(url)
  await client.lock(name).using(() => {}, { timeout: LIMIT })
  assert.ok(await isFree(client, name)())
  await client.close()
})

test('g7 the exit of a process with busy workers is quick and quiet', async (t) => {
  const code = `
import { Worker } from 'node:worker_threads'
const url = '${PACKAGE}'
const source = \`
import * as fencelock from '\${url}'
import { parentPort } from 'node:worker_threads'
const client = await fencelock.connect('memory:shared')
const work = async (n) => {
  for (;;) await client.lock('w' + n % 3).using(() => {})
}
for (let n = 0; n < 10; n += 1) work(n).catch(() => {})
parentPort.postMessage('working')
\`
const module = new URL('data:text/javascript,' + encodeURIComponent(source))
const workers = [1, 2, 3].map(() => new Worker(module))
await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('message', resolve))))
const client = await fencelock.connect('memory:shared')
await client.lock('mine').acquire()
console.log(Date.now())
process.exit()
`
  for (let round = 0; round < 5; round += 1) {
    const program = new Program(t, code)
    const began = Number(await program.line())
    assert.ok((await program.end()) - began < 1500)
  }
})
