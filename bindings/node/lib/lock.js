'use strict'

const { addAbortListener } = require('node:events')
const { inspect } = require('node:util')
const native = require('./native.js')
const check = require('./arguments.js')
const { bridge, call, callSync } = require('./calls.js')
const { Lease, using } = require('./lease.js')

const WAIT = { timeout: check.number, signal: check.signal }
const WAIT_SYNC = { timeout: check.number }

/** A name plus options. See index.d.ts beside this. */
class Lock {
  #native
  #name

  constructor(native, name) {
    this.#native = native
    this.#name = name
  }

  get name() {
    return this.#name
  }

  async acquire(options) {
    const { timeout, signal } = check.options(options, WAIT)
    if (signal !== undefined) return this.#acquireUnless(timeout, signal)
    return new Lease(await call(() => this.#native.acquire(bridge, false, timeout)))
  }

  async #acquireUnless(timeout, signal) {
    callSync(() => native.checkWait(timeout))
    if (signal.aborted) throw signal.reason
    const cancel = new native.Cancel()
    // Neither `onabort`, which is the user's, nor a listener that another one may keep from being called.
    const listener = addAbortListener(signal, () => cancel.cancel())
    let lease
    try {
      lease = await call(() => this.#native.acquire(bridge, false, timeout, cancel))
    } catch (error) {
      throw signal.aborted ? signal.reason : error
    } finally {
      listener[Symbol.dispose]()
    }
    if (signal.aborted) {
      lease.abandon()
      throw signal.reason
    }
    return new Lease(lease)
  }

  async tryAcquire() {
    const lease = await call(() => this.#native.tryAcquire(bridge, false))
    return lease === null ? null : new Lease(lease)
  }

  acquireSync(options) {
    const { timeout } = check.options(options, WAIT_SYNC)
    return new Lease(callSync(() => this.#native.acquire(bridge, true, timeout)))
  }

  tryAcquireSync() {
    const lease = callSync(() => this.#native.tryAcquire(bridge, true))
    return lease === null ? null : new Lease(lease)
  }

  async using(body, options) {
    if (typeof body !== 'function') check.refuse(body, 'what to run', 'a function')
    return using(await this.acquire(options), body)
  }

  [inspect.custom]() {
    return `Lock ${inspect(this.#name)}`
  }
}

module.exports = { Lock }
