// What the steps of one case have made so far, and the steps.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import * as fencelock from '../../index.mjs'
import { waitUntil } from '../support.mjs'
import { only } from './cases.mjs'
import { expect, judgeError, judgeInfo, millis, text, within } from './values.mjs'

/** Milliseconds that no step takes, other than one that hangs. */
const PATIENCE = 30_000

const CONNECT = {
  connect_timeout_ms: ['connectTimeout', millis],
  request_timeout_ms: ['requestTimeout', millis],
  prefix: ['prefix', text],
  collection: ['collection', text],
  root: ['root', text],
  node_layout: ['nodeLayout', text],
}
const LOCK = {
  ttl_ms: ['ttl', millis],
  renew: ['renew', (value) => value],
  max_hold_ms: ['maxHold', millis],
  metadata: ['metadata', text],
}
const WAIT = { timeout_ms: ['timeout', millis] }

/** The options that the step has, by the names of this library. */
function given(step, known) {
  const present = Object.entries(known).filter(([key]) => key in step)
  return Object.fromEntries(present.map(([key, [name, read]]) => [name, read(step[key])]))
}

export function withQuery(url, query) {
  return `${url}${url.includes('?') ? '&' : '?'}${query}`
}

export class World {
  clients = new Map()
  /** Those too whose name was used again. */
  allClients = []
  locks = new Map()
  leases = new Map()
  /** Of every lease, also of those that are gone. */
  tokens = new Map()
  waiting = new Map()
  stopwatches = new Map()

  constructor(space) {
    this.space = space
  }

  async close() {
    await Promise.all(this.allClients.map((client) => client.close()))
  }

  /** Executes a step and judges how it ended. */
  async judged(step) {
    assert.ok(Object.hasOwn(WORDS, step.do), `unknown step: ${step.do}`)
    const [execute, keys] = WORDS[step.do]
    only(step, [...keys, 'do', 'error', 'says', 'hides'])
    try {
      await limited(execute(this, step))
    } catch (error) {
      if (!('error' in step) || !(error instanceof fencelock.FencelockError)) throw error
      judgeError(step, error)
      return
    }
    assert.ok(!('error' in step), `succeeded, not ${step.error}`)
  }

  async look(step) {
    const name = text(step.name)
    const info = await this.clients.get(step.client).inspect(name)
    assert.equal(info.name, name)
    return info
  }

  judgeInfo(shows, info) {
    const unknown = (this.space.unknown ?? []).filter((key) => key in shows)
    const none = Object.fromEntries(unknown.map((key) => [key, null]))
    judgeInfo({ ...shows, ...none }, info, this.tokens)
  }

  keep(name, lease) {
    this.tokens.set(name, lease.token)
    this.leases.set(name, lease)
  }
}

/** A step that hangs must fail its case, not stop the run. */
async function limited(work) {
  const end = new AbortController()
  const late = sleep(PATIENCE, undefined, { signal: end.signal, ref: true }).then(
    () => assert.fail('it hangs'),
    () => {},
  )
  try {
    return await Promise.race([work, late])
  } finally {
    end.abort()
  }
}

async function connect(world, step) {
  let { url = world.space.url } = step
  if (url !== null && 'query' in step) url = withQuery(url, step.query)
  if (url !== null && 'credentials' in step) url = url.replace('://', `://${step.credentials}@`)
  const options = step.options ?? {}
  only(options, Object.keys(CONNECT))
  const client = await fencelock.connect(url, given(options, CONNECT))
  world.allClients.push(client)
  world.clients.set(step.as, client)
}

function startAcquire(world, step) {
  const abort = new AbortController()
  const lock = world.locks.get(step.lock)
  const lease = lock.acquire({ ...given(step, WAIT), signal: abort.signal })
  lease.catch(() => {}) // judged when it is awaited
  world.waiting.set(step.as, { lease, abort })
}

async function awaitAcquire(world, step) {
  const { lease } = world.waiting.get(step.lease)
  world.waiting.delete(step.lease)
  world.keep(step.lease, await lease)
}

async function cancelAcquire(world, step) {
  const { lease, abort } = world.waiting.get(step.lease)
  world.waiting.delete(step.lease)
  const reason = new Error('cancelled by the case')
  abort.abort(reason)
  await assert.rejects(lease, (error) => error === reason)
}

async function waitLost(world, step) {
  const lease = world.leases.get(step.lease)
  const { signal } = lease
  const end = new AbortController()
  const over = sleep('within_ms' in step ? millis(step.within_ms) : PATIENCE, undefined, end)
  // A lease that was released is not lost and never will be.
  if (!signal.aborted && lease.held) {
    signal.addEventListener('abort', () => end.abort())
    await over.catch(() => {})
  } else {
    over.catch(() => {})
    end.abort()
  }
  expect(step, lease.signal.aborted)
}

async function redis(world, step) {
  assert.ok(world.space.server, 'no server with keys')
  const { url, prefix } = world.space.server
  const server = new Redis(url)
  try {
    await server.call(step.command, prefix + text(step.name), ...step.arguments.map(text))
  } finally {
    server.disconnect()
  }
}

const lease = (world, step) => world.leases.get(step.lease)
const byBytes = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** The words that this runner knows, each with the keys that it takes. */
export const WORDS = {
  connect: [connect, ['as', 'url', 'query', 'credentials', 'options']],
  close: [(world, step) => world.clients.get(step.client).close(), ['client']],
  lock: [
    async (world, step) => {
      const client = world.clients.get(step.client)
      world.locks.set(step.as, client.lock(text(step.name), given(step, LOCK)))
    },
    ['client', 'name', 'as', 'ttl_ms', 'renew', 'max_hold_ms', 'metadata'],
  ],
  acquire: [
    async (world, step) =>
      world.keep(step.as, await world.locks.get(step.lock).acquire(given(step, WAIT))),
    ['lock', 'as', 'timeout_ms'],
  ],
  try_acquire: [
    async (world, step) => {
      const lease = await world.locks.get(step.lock).tryAcquire()
      if (lease !== null) world.keep(step.as, lease)
      expect(step, lease !== null)
    },
    ['lock', 'as', 'expect'],
  ],
  start_acquire: [async (world, step) => startAcquire(world, step), ['lock', 'as', 'timeout_ms']],
  await_acquire: [awaitAcquire, ['lease']],
  cancel_acquire: [cancelAcquire, ['lease']],
  release: [(world, step) => lease(world, step).release(), ['lease']],
  drop: [async (world, step) => world.leases.delete(step.lease), ['lease']],
  renew: [(world, step) => lease(world, step).renew(), ['lease']],
  check: [async (world, step) => lease(world, step).check(), ['lease']],
  held: [async (world, step) => expect(step, lease(world, step).held), ['lease', 'expect']],
  is_lost: [async (world, step) => expect(step, lease(world, step).lost), ['lease', 'expect']],
  wait_lost: [waitLost, ['lease', 'within_ms', 'expect']],
  remaining: [
    async (world, step) =>
      within('remaining', lease(world, step).remaining, [step.at_least_ms, step.at_most_ms]),
    ['lease', 'at_least_ms', 'at_most_ms'],
  ],
  token: [
    async (world, step) => {
      const ours = world.tokens.get(step.lease)
      for (const other of step.greater_than) assert.ok(ours > world.tokens.get(other), other)
    },
    ['lease', 'greater_than'],
  ],
  inspect: [
    async (world, step) => world.judgeInfo(step.shows ?? {}, await world.look(step)),
    ['client', 'name', 'shows'],
  ],
  wait_until: [
    async (world, step) => {
      let difference
      const seen = async () => {
        const info = await world.look(step)
        try {
          world.judgeInfo(step.shows, info)
          return true
        } catch (error) {
          difference = error
          return false
        }
      }
      await waitUntil(seen).catch(() => {
        throw difference
      })
    },
    ['client', 'name', 'shows'],
  ],
  list: [
    async (world, step) => {
      const found = await world.clients.get(step.client).list()
      assert.deepEqual(found.map((info) => info.name).sort(byBytes), step.names.map(text))
    },
    ['client', 'names'],
  ],
  force_release: [
    async (world, step) =>
      expect(step, await world.clients.get(step.client).forceRelease(text(step.name))),
    ['client', 'name', 'expect'],
  ],
  // Timers of Node count whole milliseconds and may fire almost one too early.
  sleep: [(_, step) => sleep(millis(step.ms) + 1), ['ms']],
  stopwatch: [async (world, step) => world.stopwatches.set(step.as, performance.now()), ['as']],
  elapsed: [
    async (world, step) => {
      const found = performance.now() - world.stopwatches.get(step.since)
      within('elapsed', found, [step.at_least_ms, step.at_most_ms])
    },
    ['since', 'at_least_ms', 'at_most_ms'],
  ],
  redis: [redis, ['command', 'name', 'arguments']],
}
