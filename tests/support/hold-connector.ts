import { eq } from 'drizzle-orm';
import { accountConnectors } from '../../db/schema/index.ts';
import { readConfig } from '../../server/platform/config.ts';
import { closeDeps, createDeps } from '../../server/deps.ts';
import { openConnector } from '../../server/connector-runtime/open-connector.ts';

// A separate process that opens an account connector, waits for a line, checks the connector, and prints the result.
const [url = '', id = ''] = process.argv.slice(2);
const deps = await createDeps(readConfig(process.env), url, 'worker');
const [row] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, id));
if (!row) throw new Error('no such account connector');
const { connector, ctx } = await openConnector(deps, row, {
  use: { purpose: 'test', actor: { type: 'system', id: null } },
  recorder: { start: () => ({ done() {}, failed() {} }) },
  signal: AbortSignal.timeout(60_000),
  cleanUp: () => {},
  warn: (code) => process.stdout.write(`${code}\n`),
  rateLimited: () => {},
});
process.stdout.write('open\n');
for await (const _ of console) break;
const outcome = await connector.check(ctx as never).then(
  () => 'passed',
  (error: Error) => error.message,
);
process.stdout.write(`${outcome}\n`);
await closeDeps(deps);
process.exit(0);
