// Runs the program as a user does and reads what it prints.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { after } from './sequence.mjs'

const PROGRAM = fileURLToPath(new URL('order_code.mjs', import.meta.url))

/** What a run printed and how it ended. */
function run(...args) {
  const { FENCELOCK_URL: _, ...env } = process.env
  const ended = spawnSync(process.execPath, [PROGRAM, ...args], { env, encoding: 'utf8' })
  const codes = ended.stdout.match(/^\d{8}-\d{6}/gm) ?? []
  return { code: ended.status, output: ended.stdout + ended.stderr, codes }
}

function assertCodesDifferAndRise({ code, output, codes }, threads) {
  assert.equal(code, 0, output)
  assert.equal(codes.length, threads, output)
  // Lines stand in the order of the grants.
  assert.deepEqual(codes, [...new Set(codes)].sort(), output)
  assert.match(output, /OK: every order has a code of its own\n$/)
}

function server(backend) {
  const url = process.env[`FENCELOCK_TEST_${backend}_URL`]
  assert.ok(url, `no server for ${backend}: run this by make test-examples`)
  return url
}

test('g1 order codes differ in files of this machine', () => {
  const found = run()
  assertCodesDifferAndRise(found, 20)
  assert.match(found.output, /20 threads, lock in files/)
})

test('g1 order codes differ in memory, shared by the threads of the process', () => {
  assertCodesDifferAndRise(run('--url', 'memory:order-code', '--threads', '30'), 30)
})

for (const backend of ['REDIS', 'MONGODB', 'ZOOKEEPER']) {
  test(`g1 order codes differ in ${backend}`, () => {
    assertCodesDifferAndRise(run('--url', server(backend)), 20)
  })
}

test('without the lock orders get the same code', () => {
  const { code, output, codes } = run('--no-lock')
  assert.equal(code, 0, output)
  assert.equal(codes.length, 20, output)
  assert.ok(new Set(codes).size < 20, output)
  assert.match(output, /of 20 orders got a code that was taken/)
})

test('what is wrong is said in one line', () => {
  for (const args of [['--threads', '0'], ['--url', 'gopher://'], ['--nonsense']]) {
    const { code, output } = run(...args)
    assert.equal(code, 1)
    assert.match(output, /^order_code: [^\n]*\n$/)
  }
})

test('codes rise also over midnight and when the clock is set back', () => {
  let last = '20261231-000041'
  for (const [today, expected] of [
    [20261231, '20261231-000042'],
    [20270101, '20270101-000001'],
    [20261231, '20270101-000002'],
  ]) {
    const next = after(last, today)
    assert.equal(next, expected)
    assert.ok(next > last)
    last = next
  }
  assert.throws(() => after('20270101-999999', 20270101))
})
