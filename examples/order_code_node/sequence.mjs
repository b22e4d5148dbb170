// The sequence that all threads share: a file with the last code.
//
// It stands for a row of a database, or for a service that knows only "read" and "write". Nothing
// here is atomic: that is what the threads need the lock for.

import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** The way to the database and back, in milliseconds. */
const ROUND_TRIP = 0.1
/** How many codes a day has: they all have six digits. */
const LAST_NUMBER = 999_999

export class Sequence {
  #last

  constructor(folder) {
    this.#last = join(folder, 'last')
  }

  /** A new sequence in an empty folder. Nothing was drawn yet. */
  async create() {
    await writeFile(this.#last, code(today(), 0))
  }

  /** Reads the last code, goes one on, and writes that back, unless `beforeWrite` throws. */
  async draw(beforeWrite) {
    const last = await readFile(this.#last, 'utf8')
    await sleep(ROUND_TRIP)
    const next = after(last, today())
    beforeWrite()
    // In place, because a code has always the same length.
    const file = await open(this.#last, 'r+')
    await file.write(next)
    await file.close()
    return next
  }
}

/** The code after this one. A clock that was set back must not bring back old codes. */
export function after(last, today) {
  const [day, number] = last.split('-').map(Number)
  if (today > day) return code(today, 1)
  if (number === LAST_NUMBER) throw new Error('all codes of this day are drawn')
  return code(day, number + 1)
}

/** The day and a number, such as 20261130-000042. Later codes are greater. */
function code(day, number) {
  return `${String(day).padStart(8, '0')}-${String(number).padStart(6, '0')}`
}

function today() {
  return Number(new Date().toISOString().slice(0, 10).replaceAll('-', ''))
}
