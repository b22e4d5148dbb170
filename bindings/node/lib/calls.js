'use strict'

// Native calls: made on this thread, or begun, with a promise of their end.

const { isMainThread } = require('node:worker_threads')
const native = require('./native.js')
const { fromNative } = require('./errors.js')

const WARNING = 'FencelockWarning'

/** The promises of the calls under way. */
const pending = new Map()

const bridge = new native.Bridge(() => hear(warn))

/** Takes what has come: warnings, and ends of calls. */
function hear(warn) {
  const { ended, warnings = [] } = bridge.drain()
  // First, because a listener for warnings may throw: what has ended would be lost, and its lease held.
  for (const { number, value, failure } of ended) {
    const { resolve, reject } = pending.get(number)
    pending.delete(number)
    if (failure === undefined) resolve(value)
    else reject(failure)
  }
  for (const { fault, message } of warnings) {
    warn(fault ? `${message} (please report it)` : message)
  }
}

function warn(message) {
  process.emitWarning(message, WARNING)
}

/** The same when the process ends, which runs nothing any more that is put off to a later tick. */
function warnNow(message) {
  const warning = new Error(message)
  warning.name = WARNING
  process.emit('warning', warning)
}

/** The end of the call of this number. A failure is one of the native module's. */
function ended(number) {
  return new Promise((resolve, reject) => pending.set(number, { resolve, reject }))
}

/** The end of the call that `begin` begins. */
async function call(begin) {
  try {
    return await ended(begin())
  } catch (failure) {
    // Made here, in an async function, the error shows who awaits it.
    throw fromNative(failure)
  }
}

/** What `make` returns. */
function callSync(make) {
  try {
    return make()
  } catch (failure) {
    throw fromNative(failure)
  }
}

let closesAtExit = false

/** From now on, the exit of the process releases leases. A worker's end does so by itself. */
function closeAtExit() {
  if (closesAtExit || !isMainThread) return
  closesAtExit = true
  process.once('exit', () => {
    native.closeAll()
    hear(warnNow)
  })
}

module.exports = { bridge, call, callSync, closeAtExit, ended, warn }
