// Runs the cases of tests/conformance of the repository, one test for each case and backend.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import * as fencelock from '../index.mjs'
import { described, plainSteps, readCases } from './conformance/cases.mjs'
import { WORDS, World, withQuery } from './conformance/world.mjs'
import { directory, serverUrl } from './support.mjs'

/** What the types of JavaScript can express. Its collector decides when, so drop releases nothing. */
const CAPABILITIES = ['signed_time', 'float_time', 'sub_ms_time', 'nul_in_text', 'lone_surrogates']

/** An empty space of each backend, shared by all clients of one run. */
const SPACES = {
  memory: () => ({ url: `memory:conformance-${randomUUID()}` }),
  file: (t) => ({ url: `file://${directory(t)}/locks` }),
  redis: () => {
    const server = { url: serverUrl('redis'), prefix: `conformance-${randomUUID()}:` }
    return { url: withQuery(server.url, `fl.prefix=${server.prefix}`), server }
  },
  mongodb: () => ({
    url: withQuery(serverUrl('mongodb'), `fl.collection=fencelock.${randomUUID()}`),
  }),
  zookeeper: () => ({
    url: withQuery(serverUrl('zookeeper'), `fl.root=/conformance-${randomUUID()}`),
    // What `inspect` cannot show there.
    unknown: ['held_ms', 'ttl_left_ms'],
  }),
}

const CASES = readCases()

for (const one of CASES) {
  const lacking = one.needs.filter((need) => !CAPABILITIES.includes(need))
  const skip = lacking.length > 0 && `needs ${lacking.join(', ')}`
  for (const backend of Object.keys(SPACES)) {
    if (one.backends !== undefined && !one.backends.includes(backend)) continue
    test(`${one.name}[${backend}]`, { skip }, async (t) => {
      assert.equal(process.env.FENCELOCK_URL, undefined, 'unset it for these tests')
      const world = new World(SPACES[backend](t))
      try {
        for (const [index, step] of plainSteps(one, CAPABILITIES).entries()) {
          await world.judged(step).catch((difference) => {
            const what = JSON.stringify(step).slice(0, 2000)
            throw new Error(`step ${index + 1}: ${what}: ${difference.message}`, {
              cause: difference,
            })
          })
        }
      } finally {
        await world.close()
      }
    })
  }
}

/** All values of a key in all steps, whether this runner can execute them or not. */
function ofSteps(key) {
  const steps = CASES.flatMap((one) => plainSteps(one))
  return new Set(steps.filter((step) => key in step).map((step) => step[key]))
}

test('format: the README describes the words that cases use and this runner knows', () => {
  assert.deepEqual(ofSteps('do'), described('Steps'))
  assert.deepEqual(described('Steps'), new Set(Object.keys(WORDS)))
})

test('format: capabilities', () => {
  const known = described('Capabilities')
  assert.deepEqual(new Set(CASES.flatMap((one) => one.needs)), known)
  for (const capability of CAPABILITIES) assert.ok(known.has(capability), capability)
})

test('format: backends', () => {
  const known = described('Backends')
  const named = [...CASES.flatMap((one) => one.backends ?? []), ...Object.keys(SPACES)]
  for (const backend of named) assert.ok(known.has(backend), backend)
})

test('format: every kind of error is provoked by a case, or the README says why not', () => {
  const provoked = [...ofSteps('error')]
  const excused = [...described('Errors that no case provokes')]
  const codes = Object.values(fencelock)
    .filter((value) => value?.prototype instanceof fencelock.FencelockError)
    .map((kind) => kind.code)
  assert.deepEqual([...provoked, ...excused].sort(), codes.sort())
})

test('format: no two cases have the same name', () => {
  assert.equal(new Set(CASES.map((one) => one.name)).size, CASES.length)
})
