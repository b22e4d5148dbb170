// G10: arguments are checked before any I/O, and errors say what is allowed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fencelock from '../index.mjs'

const { connect, InvalidArgument } = fencelock

const invalid = (...parts) => {
  return (error) => {
    assert.ok(error instanceof InvalidArgument, error)
    assert.equal(error.code, 'INVALID_ARGUMENT')
    for (const part of parts) assert.ok(error.message.includes(part), error.message)
    return true
  }
}

test('g10 an argument of a wrong type is refused, whatever it is', async () => {
  const client = await connect('memory:')
  for (const name of [undefined, null, 7, {}, ['a'], Symbol('a'), Buffer.from('a')]) {
    assert.throws(() => client.lock(name), invalid('name', 'string'))
    await assert.rejects(client.inspect(name), invalid('name'))
    await assert.rejects(client.forceRelease(name), invalid('name'))
  }
  for (const time of ['5', 5n, true, {}, [5], new Date()]) {
    assert.throws(() => client.lock('a', { ttl: time }), invalid('ttl', 'milliseconds'))
    assert.throws(() => client.lock('a', { maxHold: time }), invalid('maxHold'))
    await assert.rejects(client.lock('a').acquire({ timeout: time }), invalid('timeout'))
    assert.throws(() => client.lock('a').acquireSync({ timeout: time }), invalid('timeout'))
    await assert.rejects(connect('memory:', { requestTimeout: time }), invalid('requestTimeout'))
  }
  assert.throws(() => client.lock('a', { renew: 1 }), invalid('renew', 'boolean'))
  assert.throws(() => client.lock('a', { metadata: 1 }), invalid('metadata', 'string'))
  assert.throws(() => client.lock('a', 5), invalid('options', 'object'))
  await assert.rejects(client.lock('a').acquire(500), invalid('options', 'object'))
  await assert.rejects(client.lock('a').acquire({ signal: 1 }), invalid('signal', 'AbortSignal'))
  await assert.rejects(client.lock('a').using(), invalid('function'))
  await assert.rejects(
    client.lock('a').using({ timeout: 5 }, () => {}),
    invalid('function'),
  )
  await assert.rejects(connect({ prefix: 'a' }), invalid('url', 'string'))
  await assert.rejects(connect(new URL('memory:')), invalid('url', 'string'))
  assert.equal((await client.list()).length, 0)
  await client.close()
})

test('g10 an option that is not known is refused', async () => {
  const client = await connect('memory:')
  assert.throws(() => client.lock('a', { TTL: 500 }), invalid('TTL', 'ttl, renew'))
  await assert.rejects(client.lock('a').acquire({ timeoutMs: 5 }), invalid('timeoutMs', 'timeout'))
  const { signal } = new AbortController()
  assert.throws(() => client.lock('a').acquireSync({ signal }), invalid('signal'))
  await assert.rejects(connect('memory:', { ttl: 5 }), invalid('ttl', 'connectTimeout'))
  await client.close()
})

test('g10 undefined and null stand for options that are not given', async () => {
  const client = await connect('memory:', { prefix: undefined, connectTimeout: null })
  const lock = client.lock('a', { ttl: undefined, maxHold: null, renew: undefined })
  for (const none of [undefined, null, {}, { timeout: undefined, signal: undefined }]) {
    await (await lock.acquire(none)).release()
  }
  await client.close()
})

test('g10 without a URL the environment decides, else it is refused', async () => {
  delete process.env.FENCELOCK_URL
  for (const none of [undefined, null]) await assert.rejects(connect(none), invalid('file:'))
  assert.throws(() => fencelock.connectSync(), invalid('FENCELOCK_URL'))
  process.env.FENCELOCK_URL = 'memory:'
  try {
    await (await connect()).close()
  } finally {
    delete process.env.FENCELOCK_URL
  }
})

test('g10 what is wrong is told before a signal that is aborted', async () => {
  const client = await connect('memory:')
  const signal = AbortSignal.abort()
  await assert.rejects(client.lock('a').acquire({ timeout: -1, signal }), invalid('timeout'))
  await client.close()
})
