#!/usr/bin/env node
// What cargo builds, in the places where Node looks for it.
//
// usage: packages.mjs place FOLDER   puts the library that cargo left in FOLDER beside package.json
//        packages.mjs pack FOLDER [NOTICES]   packs the package, and that of this platform, into FOLDER;
//                                    with the file of the licences of what is linked in, if there is one
//
// As usual with native modules, the package has no binary: it names one package for each platform,
// and npm installs the one that fits.

import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const LICENSE = join(HERE, '../../LICENSE')
const TARGET = `${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}`
const MODULE = `fencelock.${TARGET}.node`

function place(folder) {
  const library = `libfencelock_node.${process.platform === 'darwin' ? 'dylib' : 'so'}`
  const module = join(HERE, MODULE)
  // A new file: processes that run have loaded the old one.
  rmSync(module, { force: true })
  cpSync(join(folder, library), module)
}

function pack(folder, notices) {
  mkdirSync(folder, { recursive: true })
  const scratch = mkdtempSync(join(tmpdir(), 'fencelock-pack-'))
  try {
    const description = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8'))
    const main = join(scratch, 'main')
    for (const name of ['README.md', ...description.files]) {
      cpSync(join(HERE, name), join(main, name), { recursive: true })
    }
    const targets = readdirSync(join(HERE, 'npm')).map((target) => `fencelock-${target}`)
    const published = {
      ...description,
      optionalDependencies: Object.fromEntries(targets.map((name) => [name, description.version])),
    }
    delete published.devDependencies
    writeFileSync(join(main, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)

    const platform = join(scratch, 'platform')
    cpSync(join(HERE, 'npm', TARGET), platform, { recursive: true })
    cpSync(join(HERE, MODULE), join(platform, MODULE))
    if (notices && existsSync(notices)) cpSync(notices, join(platform, basename(notices)))

    for (const source of [main, platform]) {
      cpSync(LICENSE, join(source, 'LICENSE'))
      const options = ['--silent', '--pack-destination', resolve(folder)]
      execFileSync('npm', ['pack', ...options], { cwd: source, stdio: 'inherit' })
    }
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

const [command, folder, notices] = process.argv.slice(2)
if (command === 'place' && folder) place(folder)
else if (command === 'pack' && folder) pack(folder, notices)
else {
  console.error('usage: packages.mjs place|pack FOLDER')
  process.exitCode = 2
}
