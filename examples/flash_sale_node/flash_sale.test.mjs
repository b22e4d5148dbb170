// Runs the flash sale as a user does and reads what it prints.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('flash_sale.mjs', import.meta.url))

/** What a run printed and how it ended. */
function run(url, ...args) {
  const { FENCELOCK_URL: _, ...env } = process.env
  const all = [PROGRAM, ...(url ? ['--url', url] : []), ...args]
  const { status, stdout, stderr } = spawnSync(process.execPath, all, { env, encoding: 'utf8' })
  const lines = stdout.split('\n').map((line) => line.match(/^(\S+(?: \S+)?) {2,}(.*)$/))
  const figures = Object.fromEntries(lines.filter(Boolean).map(([, name, value]) => [name, value]))
  return { code: status, output: stdout + stderr, figures }
}

function assertSoldOnce({ code, output, figures }, units) {
  assert.equal(code, 0, output)
  const expected = { total: units, sold: units, left: 0, oversold: 0, refused: 0, lost: 0 }
  for (const [name, value] of Object.entries(expected)) {
    assert.equal(Number.parseInt(figures[name], 10), value, output)
  }
  assert.match(figures.tokens, /^rise/)
  assert.match(output, /OK: every unit was sold exactly once\n$/)
}

/** The server under test, with keys of this test alone. */
function redis(t) {
  const url = process.env.FENCELOCK_TEST_REDIS_URL
  assert.ok(url, 'FENCELOCK_TEST_REDIS_URL is not set: run this by make test-examples')
  return `${url}?fl.prefix=${encodeURIComponent(t.name)}-${process.pid}:`
}

test('g1 every unit is sold once, in files of this machine', () => {
  const sale = run(undefined, '--stock', '400')
  assertSoldOnce(sale, 400)
  assert.match(sale.output, /4 processes, lock in files/)
})

test('g1 every unit is sold once, in Redis', (t) => {
  assertSoldOnce(run(redis(t), '--workers', '6'), 1000)
})

test('g4 the others go on when a worker is killed', (t) => {
  const sale = run(redis(t), '--crash', '--stock', '400')
  assertSoldOnce(sale, 400)
  const [, waited] = sale.figures.crash.match(/waited (\d+) ms/)
  assert.ok(waited >= 1900 && waited < 3500, sale.output)
})

test('without the lock units are sold twice', () => {
  const { code, output, figures } = run(undefined, '--no-lock', '--stock', '400')
  assert.equal(code, 0, output)
  assert.ok(Number(figures.oversold) > 0, output)
})

test('what is wrong is said in one line', () => {
  for (const args of [
    ['--workers', '0'],
    ['--stock', 'many'],
    ['--crash', '--no-lock'],
    ['--crash', '--workers', '1'],
    ['--url', 'gopher://'],
    ['--url', 'memory:'],
    ['--nonsense'],
  ]) {
    const { code, output } = run(undefined, ...args)
    assert.equal(code, 1, output)
    assert.match(output, /^flash_sale: [^\n]*\n$/)
  }
})
