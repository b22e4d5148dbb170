// Errors: each kind of the core has its class, and a fault of ours is one of them.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import * as fencelock from '../index.mjs'

const require = createRequire(import.meta.url)
const native = require('../lib/native.js')
const { bridge, call, callSync } = require('../lib/calls.js')
const { byCode, fromNative } = require('../lib/errors.js')

const { FencelockError } = fencelock

test('every kind of error has its class', () => {
  const codes = native.errorCodes()
  assert.ok(codes.length >= 11)
  assert.equal(new Set(codes).size, codes.length)
  assert.deepEqual([...byCode.keys()].sort(), codes.sort())
  for (const code of codes) {
    const error = fromNative({ code, message: 'text', cause: 'cause' })
    // The default for codes that are not known: only its own may fall to it.
    assert.equal(error instanceof fencelock.Internal, code === 'INTERNAL')
    assert.ok(error instanceof FencelockError && error instanceof Error)
    assert.deepEqual([error.code, error.message, error.cause.message], [code, 'text', 'cause'])
    assert.ok(
      Object.entries(fencelock).some(
        ([name, kind]) => name === error.name && error.constructor === kind,
      ),
    )
    assert.match(String(error), new RegExp(`^${error.name}: text$`))
    assert.ok(!Object.hasOwn(fromNative({ code, message: 'text' }), 'cause'))
  }
  assert.ok(fromNative({ code: 'NEW', message: 'text' }) instanceof fencelock.Internal)
  const kinds = Object.values(fencelock).filter((kind) => kind?.prototype instanceof FencelockError)
  assert.deepEqual(new Set(kinds), new Set(byCode.values()))
})

test('a panic in native code is an INTERNAL error, and the process lives', async () => {
  const fault = { name: 'Internal', code: 'INTERNAL', message: /asked for by a test/ }
  const warnings = []
  const listen = (warning) => warnings.push(warning.message)
  process.on('warning', listen)
  for (let time = 0; time < 20; time += 1) {
    await assert.rejects(
      call(() => native.panicInCallForTest(bridge, false)),
      fault,
    )
    assert.throws(() => callSync(() => native.panicInCallForTest(bridge, true)), fault)
    assert.throws(() => callSync(() => native.panicForTest()), fault)
  }
  const client = await fencelock.connect('memory:')
  assert.equal(await client.lock('a').using(() => 7), 7)
  await client.close()
  process.off('warning', listen)
  for (const warning of warnings) assert.match(warning, /a fault of fencelock/)
})

test('an error shows who waits for it', async () => {
  const client = await fencelock.connect('memory:')
  const lock = client.lock('a')
  const lease = await lock.acquire()
  async function whoAsks() {
    await lock.acquire({ timeout: 0 })
  }
  const [{ reason }] = await Promise.allSettled([whoAsks()])
  assert.match(reason.stack, /whoAsks/)
  await lease.release()
  await client.close()
})
