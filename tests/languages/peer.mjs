// One process of Node in the contest of languages, see README.md.

import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { connect } from '../../bindings/node/index.mjs'

const [url, name, rounds, file] = process.argv.slice(2)
const client = await connect(url)
const lock = client.lock(name)
console.log('ready')
await text(process.stdin)
for (let round = 0; round < Number(rounds); round++) {
  await lock.using(async (lease) => {
    const number = Number(await readFile(file, 'utf8'))
    await writeFile(file, String(number + 1))
    await appendFile(`${file}.tokens`, `node ${lease.token}\n`)
  })
}
await client.close()
