'use strict'

const { inspect } = require('node:util')
const { bridge, call, callSync, ended, warn } = require('./calls.js')
const { Closed, Forked, LockLost, Unavailable } = require('./errors.js')

/** A held lock. See index.d.ts beside this. */
class Lease {
  #native
  #loss

  constructor(native) {
    this.#native = native
  }

  get name() {
    return this.#native.name
  }

  get owner() {
    return this.#native.owner
  }

  get token() {
    return this.#native.token
  }

  get held() {
    return this.#native.held
  }

  get lost() {
    return this.#native.lost
  }

  get remaining() {
    return this.#native.remaining
  }

  get signal() {
    this.#loss ??= new Loss(this.#native)
    // The event loop may have been too busy to hear of it.
    if (this.#native.lost) this.#loss.tell()
    return this.#loss.signal
  }

  check() {
    callSync(() => this.#native.check())
  }

  async renew() {
    await call(() => this.#native.renew(bridge))
  }

  async release() {
    await call(() => this.#native.release(bridge, false))
  }

  releaseSync() {
    callSync(() => this.#native.release(bridge, true))
  }

  async [Symbol.asyncDispose]() {
    const error = await leave(this)
    if (error !== undefined) throw error
  }

  [Symbol.dispose]() {
    try {
      this.releaseSync()
    } catch (error) {
      if (judge(error) !== undefined) throw error
    }
  }

  [inspect.custom]() {
    return `Lease ${inspect(this.name)} { token: ${this.token}n, held: ${this.held} }`
  }
}

/**
 * Waits for the loss of a lease. It refers to nothing of the lease, not even in a closure: what only
 * watches must not keep it from being collected, or nobody would be warned.
 */
class Loss {
  #abort = new AbortController()
  #name

  constructor(native) {
    this.#name = native.name
    let number
    try {
      number = native.ended(bridge)
    } catch {
      return // the process is ending
    }
    this.#await(number)
  }

  #await(number) {
    ended(number).then(
      (lost) => lost && this.tell(),
      () => {}, // the process is ending
    )
  }

  get signal() {
    return this.#abort.signal
  }

  tell() {
    if (this.signal.aborted) return
    const what = 'the lease is lost; others may hold the lock now, so stop what it protects'
    this.#abort.abort(new LockLost(`lock ${JSON.stringify(this.#name)}: ${what}`))
  }
}

/** Releases a lease at the end of a block. Gives the error that the block must not hide. */
async function leave(lease) {
  try {
    await lease.release()
  } catch (error) {
    return judge(error)
  }
}

function judge(error) {
  // Not ours to release, or released when the client was closed.
  if (error instanceof Forked || error instanceof Closed) return undefined
  if (error instanceof Unavailable) {
    warn(`${error.message}; the release goes on in the background`)
    return undefined
  }
  return error
}

/** Runs `body` with the lease and releases it, whatever comes of it. */
async function using(lease, body) {
  let result
  try {
    result = await body(lease)
  } catch (error) {
    attach(error, await leave(lease))
    throw error
  }
  const error = await leave(lease)
  if (error !== undefined) throw error
  return result
}

/** Makes a loss the last cause of what the body threw, which goes on. */
function attach(thrown, loss) {
  if (loss === undefined) return
  // The body knew of this very loss.
  if (thrown instanceof LockLost && thrown.message === loss.message) return
  const seen = new Set()
  let last = thrown
  while (last?.cause instanceof Error && !seen.has(last)) {
    seen.add(last)
    last = last.cause
  }
  if (last instanceof Error && last.cause === undefined && Object.isExtensible(last)) {
    Object.defineProperty(last, 'cause', { value: loss, writable: true, configurable: true })
  }
}

module.exports = { Lease, using }
