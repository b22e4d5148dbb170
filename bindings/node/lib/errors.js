'use strict'

/** The base of all errors of this package. */
class FencelockError extends Error {
  /** The stable code, the same in every language. */
  get code() {
    return this.constructor.code
  }
}

/** A class for each kind of error of the core. */
const CLASSES = Object.entries({
  LockTimeout: 'TIMEOUT',
  LockLost: 'LOST',
  Cancelled: 'CANCELLED',
  Closed: 'CLOSED',
  Forked: 'FORKED',
  InvalidArgument: 'INVALID_ARGUMENT',
  Unsupported: 'UNSUPPORTED',
  Unavailable: 'UNAVAILABLE',
  AuthFailed: 'AUTH_FAILED',
  Conflict: 'CONFLICT',
  Internal: 'INTERNAL',
}).map(([name, code]) => {
  const kind = { [name]: class extends FencelockError {} }[name]
  kind.code = code
  return kind
})

FencelockError.code = 'INTERNAL'
for (const kind of [FencelockError, ...CLASSES]) {
  Object.defineProperty(kind.prototype, 'name', { value: kind.name })
}

const byName = Object.fromEntries(CLASSES.map((kind) => [kind.name, kind]))
const byCode = new Map(CLASSES.map((kind) => [kind.code, kind]))

/** The error for what the native module threw, or gave as the reason of a failure. */
function fromNative({ code, message, cause }) {
  const Kind = byCode.get(code) ?? byName.Internal
  if (cause === undefined || cause === null) return new Kind(message)
  return new Kind(message, { cause: typeof cause === 'string' ? new Error(cause) : cause })
}

module.exports = { FencelockError, ...byName, byCode, fromNative }
