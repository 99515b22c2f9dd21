/**
 * The peer of tests/bench/api.ts: a bare Elysia app over postgres.js that answers reads and creates of connections with
 * the very SQL of the service and nothing else: no validation, no permissions, no document.
 * Started by it: `bun bare-elysia.ts DATABASE_URL KEY_HASH CONNECTION_ID ACCOUNT_ID`; prints its port.
 */
import { drizzle } from 'drizzle-orm/postgres-js';
import { Elysia } from 'elysia';
import postgres from 'postgres';
import * as schema from '../../db/schema/index.ts';
import { ofAccount, selectConnection, selectConnections } from '../../server/resources/connections/query.ts';

const [url = '', hash = '', id = '', account_id = ''] = process.argv.slice(2);
const client = postgres(url, { max: 10, onnotice: () => {} });

/** The statement that drizzle sends for a call, as text and values. */
async function statementOf(call: (db: ReturnType<typeof drizzle<typeof schema>>) => Promise<unknown>) {
  let sent: { text: string; values: unknown[] } | null = null;
  const logger = { logQuery: (text: string, values: unknown[]) => void (sent = { text, values }) };
  await call(drizzle(client, { schema, logger }));
  if (!sent) throw new Error('no statement was sent');
  return sent as { text: string; values: unknown[] };
}

const one = await statementOf((db) => selectConnection(db, { id, account_id }));
const list = await statementOf(async (db) => selectConnections(db, ofAccount(account_id), { limit: 1000, offset: 0 }));
const run = ({ text, values }: { text: string; values: unknown[] }) =>
  client.unsafe(text, values as never[], { prepare: true });
const key = () =>
  client`select u.id, u.account_id from api_keys k join users u on u.id = k.user_id
    where k.hash = ${hash} and k.expires_at > now() and k.revoked_at is null`;

const app = new Elysia()
  .get('/connections/:id', async () => {
    await key();
    return (await run(one))[0];
  })
  .get('/connections', async () => {
    await key();
    return [...(await run(list))];
  })
  .listen({ hostname: '127.0.0.1', port: 0 });
console.log(app.server?.port);
