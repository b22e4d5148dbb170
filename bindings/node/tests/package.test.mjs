// The package as such: alone in an empty folder, by `require` and by `import`, and its types.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as fencelock from '../index.mjs'
import { directory, serverUrl } from './support.mjs'

const HERE = fileURLToPath(new URL('..', import.meta.url))
const require = createRequire(import.meta.url)
const TSC = require.resolve('typescript/bin/tsc')

const description = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

function run(cwd, command, ...args) {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

const USE = `;
(async () => {
  const { connect, LockTimeout, version } = fencelock
  const client = await connect('memory:')
  const lock = client.lock('orders/42', { ttl: 5000 })
  await lock.using(async (lease) => {
    await lock.acquire({ timeout: 0 }).catch((error) => {
      console.log(version, typeof lease.token, error instanceof LockTimeout)
    })
  })
})()
`

test('the packed package works in an empty folder', { timeout: 300_000 }, (t) => {
  const folder = directory(t)
  run(HERE, process.execPath, 'packages.mjs', 'pack', folder)
  const packed = readdirSync(folder).sort()
  assert.equal(packed.length, 2, packed)
  for (const archive of packed) {
    const names = run(folder, 'tar', 'tzf', archive).trim().split('\n').sort()
    assert.ok(names.includes('package/LICENSE'), archive)
    const wanted =
      /^package\/(lib\/\w+\.(js|d\.ts)|index\.(mjs|d\.mts)|package\.json|LICENSE|README\.md|[\w.-]+\.node)$/
    for (const name of names) assert.match(name, wanted)
  }

  const home = directory(t)
  writeFileSync(join(home, 'package.json'), '{ "private": true }')
  const archives = packed.map((archive) => join(folder, archive))
  run(home, 'npm', 'install', '--offline', '--no-audit', '--no-fund', ...archives)
  writeFileSync(join(home, 'use.cjs'), `const fencelock = require('fencelock')\n${USE}`)
  writeFileSync(join(home, 'use.mjs'), `import * as fencelock from 'fencelock'\n${USE}`)
  for (const program of ['use.cjs', 'use.mjs']) {
    const printed = run(home, process.execPath, program)
    assert.equal(printed, `${fencelock.version} bigint true\n`)
  }
  const both = `import('fencelock').then((a) => console.log(a.Lock === require('fencelock').Lock))`
  assert.equal(run(home, process.execPath, '-e', both), 'true\n')

  // What the README shows, word for word but for the server.
  const readme = readFileSync(join(HERE, 'README.md'), 'utf8')
  const shown = (language) => {
    const [, code] = readme.match(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``))
    return code.replace('redis://127.0.0.1/', serverUrl('redis'))
  }
  writeFileSync(join(home, 'shown.mjs'), shown('js'))
  writeFileSync(join(home, 'typed.mts'), shown('ts'))
  run(
    home,
    process.execPath,
    TSC,
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    'typed.mts',
  )
  for (const program of ['shown.mjs', 'typed.mjs']) {
    assert.equal(run(home, process.execPath, program), '')
  }
})

test('all packages have the version of the library', () => {
  const { version } = description(HERE)
  const manifest = readFileSync(join(HERE, '../../Cargo.toml'), 'utf8')
  assert.equal(manifest.match(/\[workspace\.package\]\nversion = "([^"]+)"/)[1], version)
  assert.equal(require('../lib/native.js').version(), version)
  const platforms = readdirSync(join(HERE, 'npm'))
  assert.deepEqual(platforms, ['darwin-arm64', 'darwin-x64', 'linux-arm64-gnu', 'linux-x64-gnu'])
  for (const platform of platforms) {
    const found = description(join(HERE, 'npm', platform))
    assert.deepEqual([found.name, found.version], [`fencelock-${platform}`, version])
    assert.deepEqual(found.files, [found.main, 'THIRD-PARTY.toml'])
  }
})

test('import gives what require gives', () => {
  const required = require('../lib/index.js')
  assert.equal(fencelock.default, required)
  const { default: _, ...imported } = fencelock
  assert.deepEqual({ ...imported }, required)
})

test('the lock file names no addresses', () => {
  const lock = readFileSync(join(HERE, 'package-lock.json'), 'utf8')
  assert.ok(!lock.includes('"resolved"'))
})

test('the types are those of the code', { timeout: 300_000 }, () => {
  const types = readFileSync(join(HERE, 'lib/index.d.ts'), 'utf8')
  const declared = [...types.matchAll(/^export (?:const|class|function) (\w+)/gm)].map(([, n]) => n)
  const { default: _, ...exported } = fencelock
  assert.deepEqual(declared.sort(), Object.keys(exported).sort())
  for (const name of ['Client', 'Lock', 'Lease']) {
    const [body] = types.match(new RegExp(`^export class ${name} [^]*?^}`, 'm'))
    const members = [...body.matchAll(/^ {2}(?:readonly )?(\w+)[(:<]/gm)].map(([, n]) => n)
    const kind = Object.entries(fencelock).find(([key]) => key === name)[1]
    const found = Object.getOwnPropertyNames(kind.prototype).filter((key) => key !== 'constructor')
    assert.deepEqual(members.sort(), found.sort(), name)
  }
  run(HERE, process.execPath, TSC, '-p', 'tests/types')
})
