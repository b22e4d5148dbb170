// Values of cases as values of this library, and what a step must have given.

import assert from 'node:assert/strict'

/** A text, also a long one or one that is no Unicode. */
export function text(value) {
  if (typeof value === 'string') return value
  if ('repeat' in value) return value.repeat.repeat(value.times) + (value.then ?? '')
  return String.fromCharCode(...value.utf16)
}

const TIMES = { nan: NaN, inf: Infinity, '-inf': -Infinity, '-0': -0, max: Number.MAX_VALUE }

/** Milliseconds, the unit of this library. */
export function millis(value) {
  if (typeof value !== 'string') return value
  assert.ok(value in TIMES, `no time: ${value}`)
  return TIMES[value]
}

export function within(what, found, [least, most]) {
  assert.ok(least <= found && found <= most, `${what} is ${found}, not ${least} to ${most}`)
}

export function expect(step, found) {
  if (!('error' in step)) assert.equal(found, step.expect)
}

export function judgeError(step, error) {
  assert.equal(error.code, step.error, error.message)
  for (const part of (step.says ?? []).map(text)) {
    assert.ok(error.message.includes(part), `${JSON.stringify(error.message)} has no ${part}`)
  }
  const shown = [error.message, error.stack, error.cause?.message, error.cause?.stack].join('\n')
  for (const part of (step.hides ?? []).map(text)) {
    assert.ok(!shown.includes(part), `${part} is shown`)
  }
}

const ID = /^[0-9a-f]{32}$/

const maybeText = (value) => (value === null ? null : text(value))

/** What `shows` may have, each with its judgement. */
const SHOWS = {
  state: (wanted, info) => assert.equal(info.state, wanted),
  owner: (wanted, info) =>
    wanted === 'id' ? assert.match(info.owner, ID) : assert.equal(info.owner, wanted),
  token: (wanted, info, tokens) =>
    assert.equal(info.token, wanted === null ? null : tokens.get(wanted)),
  metadata: (wanted, info) => assert.equal(info.metadata, maybeText(wanted)),
  metadata_says: (wanted, info) => {
    for (const part of wanted) assert.ok(info.metadata?.includes(part), info.metadata)
  },
  held_ms: (wanted, info) => maybeWithin('held_ms', info.heldMs, wanted),
  ttl_left_ms: (wanted, info) => maybeWithin('ttl_left_ms', info.ttlLeftMs, wanted),
  queue_length: (wanted, info) => assert.equal(info.queue.length, wanted),
  queue_metadata: (wanted, info) =>
    assert.deepEqual(
      info.queue.map((waiter) => waiter.metadata),
      wanted.map(text),
    ),
  queue_owners: (wanted, info) => {
    assert.equal(wanted, 'ids')
    const owners = info.queue.map((waiter) => waiter.owner)
    for (const owner of owners) assert.match(owner, ID)
    assert.equal(new Set([info.owner, ...owners]).size, owners.length + 1)
  },
  queue_waiting_ms: (wanted, info) => {
    for (const waiter of info.queue) within('queue_waiting_ms', waiter.waitingMs, wanted)
  },
}

export function judgeInfo(shows, info, tokens) {
  for (const [key, wanted] of Object.entries(shows)) {
    assert.ok(key in SHOWS, `unknown: ${key} in shows`)
    SHOWS[key](wanted, info, tokens)
  }
}

function maybeWithin(what, found, wanted) {
  if (wanted === null) assert.equal(found, null)
  else within(what, found, wanted)
}
