// Reads the cases of tests/conformance of the repository; the README there describes the format.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support.mjs'

const FOLDER = join(ROOT, 'tests/conformance')

/** All cases: one for each row where a case has rows. */
export function readCases() {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'))
  return files.sort().flatMap((file) => {
    const content = JSON.parse(readFileSync(join(FOLDER, file), 'utf8'))
    only(content, ['about', 'tables', 'cases'])
    const tables = content.tables ?? {}
    return content.cases.flatMap((raw) => {
      only(raw, ['id', 'about', 'rows', 'needs', 'backends', 'steps'])
      const { needs = [], backends, steps, rows } = raw
      const name = `${file.slice(0, -'.json'.length)}.${raw.id}`
      if (rows === undefined) return [{ name, needs, backends, steps, tables }]
      return tables[rows].map((row) => ({
        name: `${name}.${row.id}`,
        needs: [...needs, ...(row.needs ?? [])],
        backends,
        steps: fill(steps, row),
        tables,
      }))
    })
  })
}

/** Plain steps, without the inner rows that need what is not there; without a list, all. */
export function plainSteps({ steps, tables }, capabilities) {
  return steps.flatMap((step) => {
    if (step.do !== 'for_each') return [step]
    only(step, ['do', 'row', 'steps'])
    const able = (row) => (row.needs ?? []).every((need) => capabilities?.includes(need) ?? true)
    return tables[step.row].filter(able).flatMap((row) => fill(step.steps, row))
  })
}

/** Replaces "$key" by the row's value of that key. */
function fill(value, row) {
  if (typeof value === 'string' && value.startsWith('$')) {
    assert.ok(Object.hasOwn(row, value.slice(1)), `no ${value} in ${JSON.stringify(row)}`)
    return row[value.slice(1)]
  }
  if (Array.isArray(value)) return value.map((item) => fill(item, row))
  if (value === null || typeof value !== 'object') return value
  // A for_each inside has rows of its own.
  const filled = ([key, item]) => [key, key === 'steps' ? item : fill(item, row)]
  return Object.fromEntries(Object.entries(value).map(filled))
}

/** A typing error must not pass. */
export function only(found, allowed) {
  for (const key of Object.keys(found)) assert.ok(allowed.includes(key), `unknown: ${key}`)
}

/** The first column of the first table below a heading of the README. */
export function described(heading) {
  const readme = readFileSync(join(FOLDER, 'README.md'), 'utf8')
  const [, part] = readme.split(`\n## ${heading}\n`)
  const [table] = part.match(/(^\|.*\n)+/m)
  return new Set([...table.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name))
}
