'use strict'

const native = require('./native.js')
const check = require('./arguments.js')
const { bridge, call, callSync, closeAtExit } = require('./calls.js')
const { Closed } = require('./errors.js')
const { Lock } = require('./lock.js')

const CLIENT = {
  connectTimeout: check.number,
  requestTimeout: check.number,
  prefix: check.text,
  collection: check.text,
  root: check.text,
  nodeLayout: check.text,
}
const LOCK = {
  ttl: check.number,
  renew: check.flag,
  maxHold: check.number,
  metadata: check.text,
}

async function connect(url, options) {
  const given = arguments_(url, options)
  return new Client(await call(() => native.connect(bridge, false, ...given)))
}

function connectSync(url, options) {
  const given = arguments_(url, options)
  return new Client(callSync(() => native.connect(bridge, true, ...given)))
}

function arguments_(url, options) {
  const given = [
    url === undefined || url === null ? undefined : check.text(url, 'url'),
    check.options(options, CLIENT),
  ]
  closeAtExit()
  return given
}

/** The process is ending, which closes all clients. */
function refuseUnlessClosed(error) {
  if (!(error instanceof Closed)) throw error
}

/** The connections to one backend. See index.d.ts beside this. */
class Client {
  #native

  constructor(native) {
    this.#native = native
  }

  lock(name, options) {
    const given = [check.text(name, 'name'), check.options(options, LOCK)]
    return new Lock(
      callSync(() => this.#native.lock(...given)),
      name,
    )
  }

  async inspect(name) {
    check.text(name, 'name')
    return call(() => this.#native.inspect(bridge, name))
  }

  async list() {
    return call(() => this.#native.list(bridge))
  }

  async forceRelease(name) {
    check.text(name, 'name')
    return call(() => this.#native.forceRelease(bridge, name))
  }

  // Also when it is closed: a second call waits for the first.
  async close() {
    try {
      await call(() => this.#native.close(bridge, false))
    } catch (error) {
      refuseUnlessClosed(error)
    }
  }

  closeSync() {
    try {
      callSync(() => this.#native.close(bridge, true))
    } catch (error) {
      refuseUnlessClosed(error)
    }
  }

  get closed() {
    return this.#native.closed
  }

  async [Symbol.asyncDispose]() {
    await this.close()
  }

  [Symbol.dispose]() {
    this.closeSync()
  }
}

module.exports = { Client, connect, connectSync }
