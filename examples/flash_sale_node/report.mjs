// The figures of a sale, and whether it went as promised.

export class Report {
  constructor({ stock, workers, locked, crash, ttl, url }, store, turns) {
    Object.assign(this, { stock, workers, locked, crash, left: store.left })
    this.sold = store.orders.length
    this.oversold = Math.max(0, this.sold - stock)
    const sorted = [...turns].sort((a, b) => a.start - b.start)
    const waits = turns.filter(({ outcome }) => outcome === 'sold').map((t) => t.start - t.asked)
    this.waits = waits.sort((a, b) => a - b)
    this.lost = count(turns, 'lost')
    this.refused = count(turns, 'refused')
    const tokens = store.orders.map((order) => order.token)
    this.tokensRise = tokens.every((token, i) => token > (tokens[i - 1] ?? 0n))
    // A worker that ended before it saw that everything is sold has failed, and has said why.
    this.failed = workers - count(turns, 'sold out') - count(turns, 'crashed')
    this.story = crash ? describeCrash(sorted, ttl) : undefined
    const ended = Math.max(...turns.map((turn) => turn.end))
    this.perSecond =
      (this.sold * 1000) / Math.max(1, ended - Math.min(...turns.map((t) => t.asked)))
    this.place = locked ? `lock in ${url.split(':')[0].replace(/^file$/, 'files')}` : 'no lock'
  }

  /** Without the lock nothing is promised. */
  get isAsPromised() {
    if (this.failed !== 0) return false
    const once = this.sold === this.stock && this.left === 0 && this.tokensRise
    return !this.locked || (once && this.story !== '')
  }

  /** The figures, one a line; the last line is the verdict. */
  toString() {
    const lines = [
      `Flash sale of product 123: ${this.workers} processes, ${this.place}`,
      `total       ${this.stock}`,
      `sold        ${this.sold}`,
      `left        ${this.left}`,
      `oversold    ${this.oversold}`,
      `orders/s    ${this.perSecond.toFixed(0)}`,
    ]
    if (!this.locked) {
      lines.push('tokens      none, so the store can refuse nothing')
      lines.push(`WITHOUT THE LOCK: oversold ${this.oversold} of ${this.stock} units`)
      return lines.join('\n')
    }
    lines.push(
      `wait p50    ${percentile(this.waits, 50).toFixed(2)} ms`,
      `wait p99    ${percentile(this.waits, 99).toFixed(2)} ms`,
      `lost        ${this.lost} (leases that ended before the write: nothing written)`,
      `refused     ${this.refused} (orders with an older token than the store had seen)`,
    )
    if (this.story !== undefined) {
      lines.push(`crash       ${this.story || 'nobody went on after it, or it never came'}`)
    }
    lines.push(`tokens      ${this.tokensRise ? 'rise' : 'DO NOT RISE'} in the order of the orders`)
    if (this.failed !== 0) lines.push(`FAILED: ${this.failed} workers ended early`)
    else if (this.isAsPromised) lines.push('OK: every unit was sold exactly once')
    else lines.push('FAILED: see the figures above')
    return lines.join('\n')
  }
}

/** The crash; empty if there was none, or nobody got the lock after it. */
function describeCrash(turns, ttl) {
  const at = turns.findIndex((turn) => turn.outcome === 'crashed')
  const [victim, following] = [turns[at], turns[at + 1]]
  if (victim === undefined || following === undefined) return ''
  const gap = (following.start - victim.start).toFixed(0)
  return `worker ${victim.worker} was killed holding token ${victim.token}; the others waited ${gap} ms and went on (ttl ${ttl} ms)`
}

function count(turns, outcome) {
  return turns.filter((turn) => turn.outcome === outcome).length
}

function percentile(ordered, percent) {
  return ordered[Math.max(0, Math.ceil((ordered.length * percent) / 100) - 1)] ?? 0
}
