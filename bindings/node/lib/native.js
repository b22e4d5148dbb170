'use strict'

// The native module: the one that `make node` built beside us, else that of the platform's package.

const TARGETS = {
  'linux-x64': 'linux-x64-gnu',
  'linux-arm64': 'linux-arm64-gnu',
  'darwin-x64': 'darwin-x64',
  'darwin-arm64': 'darwin-arm64',
}

function load() {
  const { platform, arch } = process
  const target = TARGETS[`${platform}-${arch}`]
  if (target === undefined) {
    throw new Error(`fencelock has no binary for ${platform} on ${arch}`)
  }
  const failures = []
  for (const place of [`../fencelock.${target}.node`, `fencelock-${target}`]) {
    try {
      return require(place)
    } catch (error) {
      failures.push(error)
    }
  }
  throw new Error(
    `the native module of fencelock cannot be loaded: reinstall the package with its optional dependencies (fencelock-${target}; glibc is needed on Linux), or run \`make node\` in a clone`,
    { cause: new AggregateError(failures) },
  )
}

const native = load()
const { version } = require('../package.json')
if (native.version() !== version) {
  throw new Error(
    `fencelock ${version} found the native module of ${native.version()}: reinstall it`,
  )
}
native.start()

module.exports = native
