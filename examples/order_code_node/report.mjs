// What was drawn, and whether it went as promised.

export class Report {
  constructor(place, locked, draws) {
    this.place = place
    this.locked = locked
    // In the order in which the lock was granted; without a lock, of the codes.
    const key = locked ? (draw) => draw.token : (draw) => draw.code
    this.draws = [...draws].sort((a, b) => (key(a) < key(b) ? -1 : 1))
    this.different = new Set(draws.map((draw) => draw.code)).size
  }

  /** Whether each grant gave a greater code than the one before. */
  get codesRise() {
    const rises = (draw, index) => index === 0 || this.draws[index - 1].code < draw.code
    return this.draws.every(rises)
  }

  /** Without the lock nothing is promised. */
  get isAsPromised() {
    return !this.locked || (this.different === this.draws.length && this.codesRise)
  }

  /** The codes and figures, one a line. */
  toString() {
    const drawn = this.draws.length
    const lines = [
      `Order codes: ${drawn} threads, ${this.place}`,
      ...this.draws.map(({ code, token }) => (this.locked ? `${code}  token ${token}` : code)),
      `drawn       ${drawn}`,
      `different   ${this.different}`,
    ]
    if (!this.locked) {
      const again = drawn - this.different
      lines.push(`WITHOUT THE LOCK: ${again} of ${drawn} orders got a code that was taken`)
      return lines.join('\n')
    }
    const longest = Math.max(...this.draws.map((draw) => draw.waited))
    lines.push(
      `longest     ${longest.toFixed(2)} ms of waiting`,
      `codes       ${this.codesRise ? 'rise' : 'DO NOT RISE'} in the order of the grants`,
      this.isAsPromised ? 'OK: every order has a code of its own' : 'FAILED: see the figures above',
    )
    return lines.join('\n')
  }
}
