import fencelock = require('./lib/index.js')

export * from './lib/index.js'
export default fencelock
