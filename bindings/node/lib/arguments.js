'use strict'

// Types of arguments. What values are allowed is decided in the core.

const { InvalidArgument } = require('./errors.js')

function refuse(value, what, wanted) {
  const found = value === null ? 'null' : typeof value
  throw new InvalidArgument(`${what} must be ${wanted}, not ${found}`)
}

function text(value, what) {
  if (typeof value !== 'string') refuse(value, what, 'a string')
  // Half a surrogate pair would silently become another name on its way to UTF-8.
  if (!value.isWellFormed()) throw new InvalidArgument(`${what} cannot be written as UTF-8`)
  return value
}

function number(value, what) {
  return typeof value === 'number' ? value : refuse(value, what, 'a number of milliseconds')
}

function flag(value, what) {
  return typeof value === 'boolean' ? value : refuse(value, what, 'a boolean')
}

function signal(value, what) {
  const is = typeof value?.aborted === 'boolean' && typeof value.addEventListener === 'function'
  return is ? value : refuse(value, what, 'an AbortSignal')
}

/**
 * Options that were given, each checked. One that is not known is refused: `timeoutMs: 500` must not
 * wait for ever.
 */
function options(given, known) {
  const read = {}
  if (given === undefined || given === null) return read
  if (typeof given !== 'object') refuse(given, 'options', 'an object')
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(known, key)) {
      const allowed = Object.keys(known).join(', ')
      throw new InvalidArgument(`${key} is no option here; allowed are ${allowed}`)
    }
    if (value !== undefined && value !== null) read[key] = known[key](value, key)
  }
  return read
}

module.exports = { text, number, flag, signal, options, refuse }
