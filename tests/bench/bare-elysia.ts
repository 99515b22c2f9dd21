/**
 * The peer of tests/bench/api.ts: a bare Elysia app over postgres.js that sends the statements of the service for each
 * request and does nothing else: no permissions, no events, no document. Creates are checked by
 * Elysia's own schema, for the 422. Started by it: `bun bare-elysia.ts PLAN`; prints its port.
 */
import { Elysia, t } from 'elysia';
import postgres from 'postgres';
import type { Statement } from './statements.ts';

interface Plan {
  url: string;
  one: Statement[];
  list: Statement[];
  create: Statement[];
}

const { url, one, list, create } = (await Bun.file(process.argv[2] ?? '').json()) as Plan;
const client = postgres(url, { max: 10, onnotice: () => {} });
// JSON values of the service's statements are text already.
const { serializers } = client.options as unknown as { serializers: Record<number, (value: unknown) => unknown> };
for (const type of [114, 3802]) serializers[type] = (value) => value;
type Sql = Pick<typeof client, 'unsafe'>;

const run = (sql: Sql, { text, values }: Pick<Statement, 'text' | 'values'>) =>
  sql.unsafe(text, values as never[], { prepare: true });
const [key] = one;

/** The statement with ids and a name of this request. */
function renewed(statement: Statement, ids: Map<number, string>, name: string) {
  const values = [...statement.values];
  for (const [index, number] of Object.entries(statement.fresh)) {
    const id = ids.get(number) ?? Bun.randomUUIDv7();
    ids.set(number, id);
    values[Number(index)] = id;
  }
  for (const index of statement.names) values[index] = name;
  return { text: statement.text, values };
}

const app = new Elysia()
  .get('/connections/:id', async () => {
    await run(client, key!);
    return (await run(client, one[1]!))[0];
  })
  .get('/connections', async () => {
    await run(client, key!);
    const rows = await Promise.all(list.slice(1).map((statement) => run(client, statement)));
    return [...rows[list.findIndex(({ answers }) => answers) - 1]!];
  })
  .post(
    '/connections',
    async ({ body, set }) => {
      const ids = new Map<number, string>();
      set.status = 201;
      return client.begin(async (sql) => {
        let answer: unknown;
        for (const statement of create.slice(1)) {
          const [row] = await run(sql, renewed(statement, ids, body.name));
          if (statement.answers) answer = row;
        }
        return answer;
      });
    },
    {
      // Before the body is checked, as in the service.
      transform: async () => {
        await run(client, key!);
      },
      body: t.Object(
        {
          name: t.String({ minLength: 1, maxLength: 255 }),
          source_id: t.String({ format: 'uuid' }),
          destination_id: t.String({ format: 'uuid' }),
        },
        { additionalProperties: true },
      ),
    },
  )
  .listen({ hostname: '127.0.0.1', port: 0 });
console.log(app.server?.port);
