// What each thread does: it draws one code under the lock. This file is the example.

/** What everybody has to lock who draws an order code. */
export const LOCK = 'order-code'

/** Draws the next code: the code, the fencing token, and the milliseconds of waiting. */
export async function draw(lock, sequence) {
  const asked = performance.now()
  // The code counts only when `using` has come back. If it throws, the lease was lost while we
  // wrote, somebody else may have drawn the same code, and nobody must use ours.
  return lock.using(async (lease) => {
    const waited = performance.now() - asked
    // If the lease was lost after the last code was read, somebody else may be drawing the next one
    // already: this ends the draw before it writes.
    const code = await sequence.draw(() => lease.check())
    return { code, token: lease.token, waited }
  })
}
