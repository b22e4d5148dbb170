// The store that all workers share: the stock and the orders, kept by the process that started them.
//
// It stands for the database of a shop. As there, one statement is atomic by itself, and takes a
// moment to get there and back. What is *not* atomic is a read and the write that follows from it:
// that is what the workers need the lock for.

/** One product and its orders. */
export class Store {
  orders = []
  #highestToken = 0n

  constructor(stock) {
    this.left = stock
  }

  /** Answers the statements of a worker process. */
  serve(worker) {
    worker.on('message', ({ id, statement, values }) => {
      if (statement !== undefined) worker.send({ id, answer: this[statement](...values) })
    })
  }

  /**
   * The units left. With a token, this is the first step of a change, and from now on nobody with a
   * lower token changes anything: he cannot know what we are about to write.
   */
  readStock(token = 0n) {
    if (token > this.#highestToken) this.#highestToken = token
    return this.left
  }

  /**
   * Sets the units left and appends the order. False if the order was refused because somebody with
   * a higher token has been here. The check is part of the same atomic step as the write, as in
   * `UPDATE … SET left = ?, token = ? WHERE product = 123 AND token <= ?`.
   */
  placeOrder(worker, token, left) {
    if (token !== undefined && token < this.#highestToken) return false
    this.left = left
    this.readStock(token)
    this.orders.push({ worker, token: token ?? 0n })
    return true
  }
}

/** The store as a worker process sees it. */
export class Remote {
  #parent
  #answers = new Map()
  #next = 0

  constructor(parent) {
    this.#parent = parent
    parent.on('message', ({ id, answer }) => {
      this.#answers.get(id)(answer)
      this.#answers.delete(id)
    })
  }

  readStock(token) {
    return this.#ask('readStock', token)
  }

  placeOrder(worker, token, left) {
    return this.#ask('placeOrder', worker, token, left)
  }

  #ask(statement, ...values) {
    this.#next += 1
    this.#parent.send({ id: this.#next, statement, values })
    return new Promise((resolve) => this.#answers.set(this.#next, resolve))
  }
}
