// A flash sale: many workers buy the same product at once, and every unit is sold exactly once.
//
// How the lock is used stands in worker.mjs; how a store checks fencing tokens in store.mjs.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
// In a project of your own: from 'fencelock'.
import { connect } from '../../bindings/node/index.mjs'
import { Report } from './report.mjs'
import { Store } from './store.mjs'

const USAGE = `usage: flash_sale.mjs [--url URL] [--stock N] [--workers N] [--no-lock | --crash]

Sells the stock of product 123, one unit at a time, to worker processes that all want it at once.
Every unit is sold exactly once, because the workers take a lock around "read the stock, check it,
write it back".

  --url URL      where the lock is kept, such as redis://host/ (default: what FENCELOCK_URL says,
                 else files of this machine)
  --stock N      units to sell (default 1000)
  --workers N    processes that buy (default 4)
  --no-lock      do not lock: shows how much is oversold then
  --crash        kill a worker while it holds the lock: shows how the others go on when its ttl is
                 over`

/** How long processes get to start before the sale opens, in milliseconds. */
const STARTING = 750
/** The lock's ttl: with --crash that is how long the others have to wait. */
const TTL = 30_000
const TTL_CRASH = 2000

function parseOptions() {
  const { values } = parseArgs({
    options: {
      url: { type: 'string', default: process.env.FENCELOCK_URL },
      stock: { type: 'string', default: '1000' },
      workers: { type: 'string', default: '4' },
      'no-lock': { type: 'boolean', default: false },
      crash: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const { url, crash, help } = values
  const [stock, workers] = [number(values, 'stock', 1_000_000), number(values, 'workers', 100)]
  if (crash && values['no-lock']) throw new Error('--crash is not allowed with --no-lock')
  if (crash && workers < 2) throw new Error('--crash needs at least 2 workers')
  if (url?.startsWith('memory:')) throw new Error('the workers are processes; memory: is for one')
  const ttl = crash ? TTL_CRASH : TTL
  return { url, stock, workers, locked: !values['no-lock'], crash, ttl, help }
}

function number(values, name, most) {
  const found = Number(values[name])
  if (Number.isInteger(found) && found >= 1 && found <= most) return found
  throw new Error(`--${name} ${values[name]} is not in 1 to ${most}`)
}

/** The whole sale. */
async function sell(options) {
  const folder = await mkdtemp(join(tmpdir(), 'flash-sale-'))
  try {
    const url = options.url ?? `file://${folder}/locks`
    await (await connect(url)).close() // tells a wrong URL early, and once
    const store = new Store(options.stock)
    const turns = []
    const opensAt = Date.now() + STARTING
    const ends = Array.from({ length: options.workers }, (_, worker) => {
      // The first worker is the victim, when a quarter of the stock is sold.
      const crashAfter = Math.floor(options.stock / (4 * options.workers))
      const victim = options.crash && worker === 0
      const job = { ...options, url, worker, opensAt, crashAfter: victim ? crashAfter : undefined }
      return watch(start(job), store, turns)
    })
    await Promise.all(ends)
    return new Report({ ...options, url }, store, turns)
  } finally {
    await rm(folder, { recursive: true })
  }
}

function start(job) {
  const program = fileURLToPath(new URL('worker.mjs', import.meta.url))
  // Tokens are bigints, which only this way of passing messages can carry.
  return fork(program, [JSON.stringify(job)], { serialization: 'advanced' })
}

/** Serves a worker and hears its reports until it ends. */
async function watch(worker, store, turns) {
  store.serve(worker)
  worker.on('message', ({ turn }) => {
    if (turn === undefined) return
    turns.push(turn)
    if (turn.outcome === 'crashed') worker.kill('SIGKILL')
  })
  await once(worker, 'close')
}

try {
  const options = parseOptions()
  if (options.help) console.log(USAGE)
  else {
    const report = await sell(options)
    console.log(String(report))
    process.exitCode = report.isAsPromised ? 0 : 1
  }
} catch (error) {
  console.error(`flash_sale: ${error.message}`)
  process.exitCode = 1
}
