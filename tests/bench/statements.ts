import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { createApp } from '../../server/http/app.ts';
import { readConfig } from '../../server/platform/config.ts';
import { closeDeps, createDeps } from '../../server/deps.ts';

/** Statements of one request, in order. The first one looks up the key. */
export interface Statement {
  text: string;
  values: unknown[];
  /** Positions of IDs that each request generates, with a number for each different one. */
  fresh: Record<number, number>;
  /** Positions of the name, which must differ each time. */
  names: number[];
  /** Its rows are the response. */
  answers: boolean;
}

type Ask = [method: string, path: string, body?: object];

/** Listens to a service in this process, with the database and the secret of the measured one. */
export async function listen(env: Record<string, string>, url: string) {
  const deps = await createDeps(readConfig(env), url, 'api');
  const sent: { text: string; values: unknown[] }[] = [];
  const logger = { logQuery: (text: string, values: unknown[]) => void sent.push({ text, values }) };
  const client = postgres(url, { max: 2, onnotice: () => {} });
  const app = createApp({ ...deps, db: drizzle(client, { logger }) });
  const ask = async ([method, path, body]: Ask) => {
    sent.length = 0;
    const headers = { authorization: `Bearer ${env.BOOTSTRAP_API_KEY}`, 'content-type': 'application/json' };
    const answer = await app.handle(
      new Request(`http://localhost${path}`, { method, headers, body: body && JSON.stringify(body) }),
    );
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
    return [...sent];
  };
  return {
    /** Sends the request twice, with two names if `named` builds a body: what differs is generated per request. */
    async statementsOf(method: string, path: string, named?: (name: string) => object): Promise<Statement[]> {
      const names = [`name ${Bun.randomUUIDv7()}`, `name ${Bun.randomUUIDv7()}`] as const;
      const first = await ask([method, path, named?.(names[0])]);
      const second = await ask([method, path, named?.(names[1])]);
      const numbers = new Map<unknown, number>();
      // The statement that reads a whole connection is the longest.
      const longest = Math.max(...first.map(({ text }) => text.length));
      return first.map(({ text, values }, at) => {
        const fresh: Record<number, number> = {};
        const differing = values.flatMap((value, index) => (value === second[at]?.values[index] ? [] : [index]));
        for (const index of differing.filter((one) => isId(values[one]))) {
          if (!numbers.has(values[index])) numbers.set(values[index], numbers.size);
          fresh[index] = numbers.get(values[index])!;
        }
        return {
          text,
          values,
          fresh,
          names: differing.filter((index) => values[index] === names[0]),
          answers: text.length === longest,
        };
      });
    },
    async close() {
      await client.end({ timeout: 5 });
      await closeDeps(deps);
    },
  };
}

const isId = (value: unknown) => typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value);
