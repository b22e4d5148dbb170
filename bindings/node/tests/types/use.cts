// The same types by `require`.

import fencelock = require('fencelock')

const client: Promise<fencelock.Client> = fencelock.connect('memory:')
client.then((open) => open.lock('a').using((lease: fencelock.Lease) => lease.token))
