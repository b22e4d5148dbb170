// What the tests share: backends, waiting for a state, other processes, a Redis server of one's own.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'

/** Milliseconds until something that should happen at once counts as not happening. */
export const LIMIT = 20_000

const PACKAGE = new URL('../index.mjs', import.meta.url)

/** The shared server of a backend. */
export function serverUrl(backend) {
  const variable = `FENCELOCK_TEST_${backend.toUpperCase()}_URL`
  const url = process.env[variable]
  // Not skipped: a run without servers must not look like a good one.
  assert.ok(url, `${variable} is not set: run the tests with tests/services/run`)
  return url
}

/** A backend of the kind, empty where that costs nothing. */
export function backendUrl(t, backend) {
  if (backend === 'memory') return `memory:${randomUUID()}`
  if (backend === 'file') return `file://${directory(t)}/locks`
  return serverUrl(backend)
}

/** Those that several processes share. */
export const SHARED = ['file', 'redis', 'mongodb', 'zookeeper']
export const BACKENDS = ['memory', ...SHARED]

/** One test for each backend. `run` gets the context, the URL, and a name that no other test uses. */
export function onEach(backends, name, run) {
  for (const backend of backends) {
    test(`${name} [${backend}]`, { timeout: 120_000 }, (t) =>
      run(t, backendUrl(t, backend), uniqueName()),
    )
  }
}

export function uniqueName() {
  return `node/${randomUUID()}`
}

/** An empty folder of one test. */
export function directory(t) {
  const path = mkdtempSync(join(tmpdir(), 'fencelock-node-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Ends as soon as the condition is true. */
export async function waitUntil(condition, limit = LIMIT) {
  const end = performance.now() + limit
  while (!(await condition())) {
    assert.ok(performance.now() < end, 'the expected state never came')
    await sleep(2)
  }
}

/** Ends when the lease is lost. By itself a lease does not keep the process alive. */
export async function lost({ signal }) {
  const over = new AbortController()
  signal.addEventListener('abort', () => over.abort())
  if (signal.aborted) return
  const late = await sleep(LIMIT, true, { signal: over.signal }).catch(() => false)
  assert.ok(!late, 'the lease was not lost')
}

/** Takes up this thread, and with it the event loop. */
export function busy(ms) {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Where the packages are found by their names, ours among them. */
const HOME = fileURLToPath(new URL('..', import.meta.url))

/** A program in a process of its own, talked to by lines. It can use `fencelock`. */
export class Program {
  constructor(t, code, ...args) {
    this.process = spawn(
      process.execPath,
      ['--input-type=module', '-e', `import * as fencelock from '${PACKAGE}'\n${code}`, ...args],
      { stdio: ['pipe', 'pipe', 'pipe'], cwd: HOME },
    )
    this.output = ''
    this.errors = ''
    this.process.stderr.setEncoding('utf8').on('data', (text) => {
      this.errors += text
    })
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]()
    this.ended = once(this.process, 'close').then(([code, signal]) => ({
      code,
      signal,
      at: Date.now(),
    }))
    t.after(() => this.process.kill('SIGKILL'))
  }

  /** The next line that it prints. */
  async line() {
    const { value, done } = await this.lines.next()
    if (done) {
      const { code, signal } = await this.ended
      assert.fail(`ended with ${code ?? signal}: ${this.errors}`)
    }
    return value
  }

  /** Waits for its end, which must be quiet. */
  async end() {
    const { code, at } = await this.ended
    assert.deepEqual([code, this.errors], [0, ''])
    return at
  }
}

/** Stops a process, until that has effect: on a busy machine, a server could answer in between. */
export function stop(process) {
  process.kill('SIGSTOP')
  const tasks = `/proc/${process.pid}/task`
  const state = (task) => readFileSync(`${tasks}/${task}/stat`, 'utf8').split(') ').at(-1)[0]
  while (!readdirSync(tasks).every((task) => state(task) === 'T'));
}

/** A Redis server of one test, which may stop and flush it. */
export async function ownRedis(t) {
  const binary = process.env.FENCELOCK_TEST_REDIS_SERVER ?? 'redis-server'
  const port = await freePort()
  const settings = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const server = spawn(binary, ['--port', `${port}`, ...settings], {
    cwd: directory(t),
    stdio: 'ignore',
    detached: true,
  })
  const url = `redis://127.0.0.1:${port}/`
  const redis = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null })
  redis.on('error', () => {}) // until it listens
  t.after(() => {
    redis.disconnect()
    server.kill('SIGKILL')
  })
  await redis.ping()
  /** From here on it answers nothing, until `thaw`. */
  const freeze = () => stop(server)
  const thaw = () => server.kill('SIGCONT')
  async function frozen(body) {
    freeze()
    try {
      return await body()
    } finally {
      thaw()
    }
  }
  return { url, redis, freeze, thaw, frozen }
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}

/** The folder of the repository. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
