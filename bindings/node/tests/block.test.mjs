// Leaving a block: what `using` and the disposers throw.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import ts from 'typescript'
import { connect, LockLost, LockTimeout, Unavailable } from '../index.mjs'
import { BACKENDS, LIMIT, lost, onEach, ownRedis, uniqueName, waitUntil } from './support.mjs'

const SHORT = { ttl: 200, renew: false }

onEach(BACKENDS, 'g7 using releases and gives what the body gives', async (_, url, name) => {
  await using_(url, async (client) => {
    const lock = client.lock(name)
    assert.equal(await lock.using(() => 7), 7)
    assert.equal(await lock.using(async ({ held }) => held), true)
    assert.equal((await client.inspect(name)).state, 'free')
  })
})

/** `await using`, which Node 20 cannot parse. */
async function using_(url, body) {
  const client = await connect(url)
  try {
    await body(client)
  } finally {
    await client[Symbol.asyncDispose]()
    assert.ok(client.closed)
  }
}

onEach(BACKENDS, 'g7 the error of a body goes on, and the lock is free', async (_, url, name) => {
  await using_(url, async (client) => {
    const lock = client.lock(name)
    for (const thrown of [new Error('mine'), new TypeError('mine'), 'a text', undefined, null]) {
      const bodies = [() => Promise.reject(thrown), () => fail(thrown)]
      for (const body of bodies) {
        const [found] = await Promise.allSettled([lock.using(body)])
        assert.deepEqual([found.status, found.reason], ['rejected', thrown])
      }
      assert.equal(thrown?.cause, undefined)
    }
    assert.equal((await client.inspect(name)).state, 'free')
  })
})

function fail(thrown) {
  throw thrown
}

test('g7 the body does not run when the lock was not obtained', async () => {
  await using_('memory:', async (client) => {
    const lock = client.lock('a')
    const lease = await lock.acquire()
    const body = () => assert.fail('it ran')
    await assert.rejects(lock.using(body, { timeout: 20 }), LockTimeout)
    await assert.rejects(lock.using(body, { timeout: 0 }), LockTimeout)
    const signal = AbortSignal.timeout(20)
    await assert.rejects(lock.using(body, { signal }), { name: 'TimeoutError' })
    await lease.release()
  })
})

onEach(BACKENDS, 'g2 a lost lease is told, with the error of the body', async (_, url, name) => {
  await using_(url, async (client) => {
    const lock = client.lock(name, SHORT)
    await assert.rejects(lock.using(lost, { timeout: LIMIT }), LockLost)

    const first = new Error('first')
    const mine = new Error('mine', { cause: first })
    const throwing = async (lease) => {
      await lost(lease)
      throw mine
    }
    const [{ reason }] = await Promise.allSettled([lock.using(throwing, { timeout: LIMIT })])
    assert.equal(reason, mine)
    assert.equal(reason.cause, first)
    assert.ok(first.cause instanceof LockLost)

    // A body that knew: nothing is attached to what it was told.
    const knowing = async (lease) => {
      await lost(lease)
      lease.signal.throwIfAborted()
    }
    const [{ reason: told }] = await Promise.allSettled([lock.using(knowing, { timeout: LIMIT })])
    assert.ok(told instanceof LockLost)
    assert.equal(told.cause, undefined)
  })
})

test('g2 of two nested blocks whose leases are lost, the outer loss is attached to the inner', async () => {
  await using_('memory:', async (client) => {
    const inner = async (outerLease) => {
      await client.lock('inner', SHORT).using(lost, { timeout: LIMIT })
      assert.fail(outerLease.name)
    }
    const outer = client.lock('outer', SHORT).using(inner, { timeout: LIMIT })
    const [{ reason }] = await Promise.allSettled([outer])
    assert.ok(reason instanceof LockLost)
    assert.match(reason.message, /"inner"/)
    assert.match(reason.cause.message, /"outer"/)
  })
})

test('g2 what cannot have a cause goes on as it is', async () => {
  await using_('memory:', async (client) => {
    const circle = new Error('circle')
    circle.cause = new Error('other', { cause: circle })
    const closed = Object.preventExtensions(new Error('closed'))
    for (const thrown of ['a text', null, circle, closed, Object.freeze({})]) {
      const throwing = async (lease) => {
        await lost(lease)
        throw thrown
      }
      const [{ reason }] = await Promise.allSettled([client.lock('a', SHORT).using(throwing)])
      assert.equal(reason, thrown)
    }
  })
})

test('g2 disposers throw what leaving a block throws', async () => {
  await using_('memory:', async (client) => {
    const lease = await client.lock('a', SHORT).acquire()
    await lease[Symbol.asyncDispose]()
    await lease[Symbol.asyncDispose]()
    client.lock('a').acquireSync()[Symbol.dispose]()

    const short = await client.lock('a', SHORT).acquire()
    await lost(short)
    await assert.rejects(short[Symbol.asyncDispose](), LockLost)
    assert.throws(() => short[Symbol.dispose](), LockLost)

    // Closing has released it.
    const open = await client.lock('a').acquire()
    await client.close()
    await open[Symbol.asyncDispose]()
    open[Symbol.dispose]()
  })
})

/** Blocks as users write them; Node 20 runs what the TypeScript compiler makes of them. */
const BLOCKS = `
export async function leave(lock, body) {
  await using lease = await lock.acquire()
  return await body(lease)
}
export function leaveSync(lock, body) {
  using lease = lock.acquireSync()
  return body(lease)
}
export async function leaveClient(connecting) {
  await using client = await connecting
  return client
}
`

async function compiledBlocks() {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ES2022 }
  const { outputText } = ts.transpileModule(BLOCKS, { compilerOptions })
  return import(`data:text/javascript,${encodeURIComponent(outputText)}`)
}

onEach(BACKENDS, 'g7 `await using` and `using` release at the end', async (_, url, name) => {
  const { leave, leaveSync, leaveClient } = await compiledBlocks()
  const client = await connect(url)
  const lock = client.lock(name)
  assert.equal(await leave(lock, async ({ held }) => held), true)
  assert.equal((await client.inspect(name)).state, 'free')
  assert.equal(
    leaveSync(lock, ({ held }) => held),
    true,
  )
  assert.equal((await client.inspect(name)).state, 'free')
  const mine = new Error('mine')
  await assert.rejects(
    leave(lock, () => fail(mine)),
    (error) => error === mine,
  )
  assert.throws(
    () => leaveSync(lock, () => fail(mine)),
    (error) => error === mine,
  )
  assert.equal((await client.inspect(name)).state, 'free')
  assert.ok((await leaveClient(client)).closed)
})

test('g2 `await using` tells a loss, together with what the block threw', async () => {
  const { leave } = await compiledBlocks()
  const client = await connect('memory:')
  const lock = client.lock('a', SHORT)
  await assert.rejects(leave(lock, lost), LockLost)
  const mine = new Error('mine')
  const throwing = async (lease) => {
    await lost(lease)
    throw mine
  }
  await assert.rejects(leave(lock, throwing), (error) => {
    assert.equal(error.name, 'SuppressedError')
    assert.ok(error.error instanceof LockLost)
    assert.equal(error.suppressed, mine)
    return true
  })
  await client.close()
})

test('g7 leaving never throws Unavailable; an explicit release does', async (t) => {
  const { url, freeze, thaw } = await ownRedis(t)
  const client = await connect(url, { requestTimeout: 700 })
  const lock = client.lock(uniqueName(), { ttl: 20_000 })
  const warned = once(process, 'warning')
  const body = () => {
    freeze()
    return 7
  }
  assert.equal(await lock.using(body), 7)
  thaw()
  const [{ name, message }] = await warned
  assert.equal(name, 'FencelockWarning')
  assert.match(message, /goes on in the background/)

  const lease = await lock.acquire({ timeout: LIMIT })
  freeze()
  await assert.rejects(lease.release(), Unavailable)
  thaw()
  await waitUntil(async () => (await client.inspect(lock.name)).state === 'free')
  await lease.release() // asks again
  await client.close()
})
