// Order codes: many threads draw the next code from one sequence, and no code is given out twice.
//
// How the lock is used stands in worker.mjs; what it protects in sequence.mjs.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
// In a project of your own: from 'fencelock'.
import { connect } from '../../bindings/node/index.mjs'
import { Report } from './report.mjs'
import { Sequence } from './sequence.mjs'
import { draw, LOCK } from './worker.mjs'

const USAGE = `usage: order_code.mjs [--url URL] [--threads N] [--no-lock]

Draws order codes, one in each thread, all at once. All codes differ, because the threads take a
lock around "read the last code, add one, write it back".

  --url URL      where the lock is kept, such as redis://host/ (default: what FENCELOCK_URL says,
                 else files of this machine)
  --threads N    threads, each of which draws one code (default 20)
  --no-lock      do not lock: shows how many orders get the same code then`

function parseOptions() {
  const { values } = parseArgs({
    options: {
      url: { type: 'string', default: process.env.FENCELOCK_URL },
      threads: { type: 'string', default: '20' },
      'no-lock': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const threads = Number(values.threads)
  if (!Number.isInteger(threads) || threads < 1 || threads > 200) {
    throw new Error(`--threads ${values.threads} is not in 1 to 200`)
  }
  return { url: values.url, threads, locked: !values['no-lock'], help: values.help }
}

/** The whole run. */
async function drawCodes({ url: given, threads, locked }) {
  const folder = await mkdtemp(join(tmpdir(), 'order-code-'))
  try {
    await new Sequence(folder).create()
    const url = given ?? `file://${folder}/locks`
    const ready = new Int32Array(new SharedArrayBuffer(4))
    const job = { url, folder, threads, locked, ready }
    const draws = await Promise.all(Array.from({ length: threads }, () => inThread(job)))
    const scheme = url.split(':')[0]
    const place = scheme === 'file' ? 'lock in files' : `lock in ${scheme}`
    return new Report(locked ? place : 'no lock', locked, draws)
  } finally {
    await rm(folder, { recursive: true })
  }
}

function inThread(workerData) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

/** The life of a thread: it has a client of its own, and waits until all have one. */
async function beThread({ url, folder, threads, locked, ready }) {
  const sequence = new Sequence(folder)
  const client = locked ? await connect(url) : undefined
  if (Atomics.add(ready, 0, 1) + 1 === threads) Atomics.notify(ready, 0)
  for (let seen = ready[0]; seen < threads; seen = ready[0]) Atomics.wait(ready, 0, seen, 10)
  const drawn = locked
    ? await draw(client.lock(LOCK), sequence)
    : { code: await sequence.draw(() => {}) }
  parentPort.postMessage(drawn)
  await client?.close()
}

async function main() {
  try {
    const options = parseOptions()
    if (options.help) return console.log(USAGE)
    const report = await drawCodes(options)
    console.log(String(report))
    process.exitCode = report.isAsPromised ? 0 : 1
  } catch (error) {
    console.error(`order_code: ${error.message}`)
    process.exit(1)
  }
}

if (isMainThread) await main()
else await beThread(workerData)
