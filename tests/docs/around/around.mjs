// The reader's own functions, in JavaScript.

globalThis.takeOneUnit = async ({ token, signal }) => {
  signal?.throwIfAborted()
  if (token <= 0n) throw new Error('no token')
}
