'use strict'

const { version } = require('../package.json')
const { Client, connect, connectSync } = require('./client.js')
const { byCode, fromNative, ...errors } = require('./errors.js')
const { Lease } = require('./lease.js')
const { Lock } = require('./lock.js')

module.exports = { version, connect, connectSync, Client, Lock, Lease, ...errors }
