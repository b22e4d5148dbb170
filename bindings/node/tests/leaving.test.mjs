// The page on leaving redlock and redis-semaphore: its code runs, one release beside the next, with
// the real packages. Each block exports `productLocked`, under which a number is raised that nothing
// else guards: what two do at once is lost.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { Semaphore } from 'redis-semaphore'
import { Conflict, connect } from '../index.mjs'
import { directory, Program, serverUrl, uniqueName } from './support.mjs'

const PAGE = readFileSync(new URL('../LEAVING-REDLOCK.md', import.meta.url), 'utf8')
const ROUNDS = 25

const COUNT = `
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
const [file, count] = process.argv.slice(1)
console.log('ready')
await once(process.stdin, 'data')
for (let round = 0; round < Number(count); round += 1) {
  await productLocked(async () => {
    const before = Number(await readFile(file, 'utf8'))
    await sleep(5)
    await writeFile(file, String(before + 1))
  })
  await new Promise(setImmediate)
}
process.exit()
`

/** The code below a heading, on this run's server. */
function code(heading, replaced) {
  const [, section] = PAGE.split(new RegExp(`^#+ ${heading}$`, 'm'))
  assert.ok(section, heading)
  let [, block] = /^```js\n(.*?)^```$/ms.exec(section)
  for (const [old, ours] of Object.entries(replaced)) block = block.replaceAll(old, ours)
  return block
}

/** How many increments are lost by two instances of each. */
async function lost(t, ...releases) {
  const file = join(directory(t), 'counter')
  await writeFile(file, '0')
  const programs = [...releases, ...releases].map(
    (release) => new Program(t, release + COUNT, file, `${ROUNDS}`),
  )
  // None has done its rounds before the last one begins.
  for (const program of programs) assert.equal(await program.line(), 'ready')
  for (const { process } of programs) process.stdin.write('go')
  for (const program of programs) await program.end()
  return programs.length * ROUNDS - Number(await readFile(file, 'utf8'))
}

function inOneRelease() {
  const url = serverUrl('redis').replace(/\/$/, '')
  return { 'redis://127.0.0.1:6379': url, 'product/123': randomUUID() }
}

test('g1 leaving redlock on one server in one release', { timeout: 60_000 }, async (t) => {
  const replaced = inOneRelease()
  const before = code('Before: redlock on one server', replaced)
  assert.equal(await lost(t, before, code('After', replaced)), 0)
})

test('g1 leaving redis-semaphore in one release', { timeout: 60_000 }, async (t) => {
  const replaced = inOneRelease()
  const before = code('Before: redis-semaphore', replaced)
  assert.match(PAGE, /the prefix below is then `mutex:locks:`/)
  const after = code('After', { ...replaced, "'locks:'": "'mutex:locks:'" })
  assert.equal(await lost(t, before, after), 0)
})

/** Three databases are three servers for redlock, and ours is in a fourth. */
function inTwoReleases() {
  const url = serverUrl('redis').replace(/\/$/, '')
  const replaced = {
    "['redis://127.0.0.1:6379'": `['${url}/1'`,
    'redis://127.0.0.1:6380': `${url}/2`,
    'redis://127.0.0.1:6381': `${url}/3`,
    'redis://127.0.0.1:6379': `${url}/0`,
    'product/123': uniqueName(),
  }
  const headings = [
    'Release 0: what runs now',
    'Release 1: both, the old one first',
    'Release 2: only ours',
  ]
  return headings.map((heading) => code(heading, replaced))
}

test('g1 leaving redlock on several servers: old beside both', { timeout: 60_000 }, async (t) => {
  const [old, both] = inTwoReleases()
  assert.equal(await lost(t, old, both), 0)
})

test('g1 leaving redlock on several servers: both beside ours', { timeout: 60_000 }, async (t) => {
  const [, both, ours] = inTwoReleases()
  assert.equal(await lost(t, both, ours), 0)
})

test('a semaphore of redis-semaphore is a conflict', async (t) => {
  const url = serverUrl('redis')
  const redis = new Redis(url)
  const client = await connect(url, { prefix: 'semaphore:' })
  t.after(() => Promise.all([redis.quit(), client.close()]))
  const name = uniqueName()
  const semaphore = new Semaphore(redis, name, 2)
  await semaphore.acquire()
  await assert.rejects(client.lock(name).tryAcquire(), Conflict)
  await semaphore.release()
})
