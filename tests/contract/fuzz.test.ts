import { afterAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { eq } from 'drizzle-orm';
import { accounts, apiKeys } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { isThorough } from '../support/thorough.ts';
import { type Operation, readContract } from './document.ts';
import { type Case, casesOf } from './requests.ts';
import { makeWorld } from './world.ts';

/**
 * No request, however broken, gets a 5xx response or one that the document does not describe. The cases are the same in
 * each run, so that a change is judged by itself; `check:thorough` tries new ones. FUZZ_SEED sets them, FUZZ_CASES sets
 * their number.
 */
const CASES = Number(process.env.FUZZ_CASES ?? (isThorough ? 48 : 12));
const SEED = Number(process.env.FUZZ_SEED ?? (isThorough ? Math.floor(Math.random() * 2 ** 31) : 1));

const contract = readContract();
const service = await testDeps();
const app = createApp(service.deps);
const api = testApi(service);
const keys = {
  administrator: service.api_key,
  viewer: await api.keyWith([]),
  nobody: 'nobody-has-this-key-0123456789',
};
const [first] = await service.deps.db.select().from(accounts).where(eq(accounts.id, service.account_id));
const own = { account_id: service.account_id, call: api.call };
const other = await api.otherAccount();
const [lasting, foreign] = [await makeWorld(service, own), await makeWorld(service, other)];
/** Cases change and delete objects that the next ones need, so the world is created again from time to time. */
const PER_WORLD: Record<string, number> = { DELETE: 6, POST: 25 };
const seen = new Map<string, Map<number, number>>();

async function send(operation: Operation, one: Case) {
  const response = await app.handle(
    new Request(`http://localhost${one.path}${one.query}`, {
      method: operation.method,
      headers: {
        authorization: `Bearer ${keys[one.caller]}`,
        ...(typeof one.body === 'string' && { 'content-type': 'application/json' }),
        ...one.headers,
      },
      body: operation.method === 'GET' ? undefined : one.body,
    }),
  );
  const text = await response.text();
  const statuses = seen.get(operation.name) ?? new Map<number, number>();
  seen.set(operation.name, statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1));
  return { status: response.status, headers: response.headers, text };
}

/** A case may have rotated the administrator's key, or changed the plan. */
async function restoreAccount(): Promise<void> {
  const { db } = service.deps;
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  await db.update(apiKeys).set({ expires_at: tomorrow, revoked_at: null }).where(eq(apiKeys.user_id, service.user_id));
  await db.update(accounts).set({ plan_id: first!.plan_id }).where(eq(accounts.id, service.account_id));
}

async function tryCases(operation: Operation) {
  const perWorld = PER_WORLD[operation.method] ?? CASES;
  for (let done = 0; done < CASES; done += perWorld) {
    await restoreAccount();
    const worlds = { own: perWorld < CASES ? await makeWorld(service, own) : lasting, foreign };
    const property = fc.asyncProperty(casesOf(contract, operation, worlds), async (one) => {
      const answer = await send(operation, one);
      const problems = contract.problemsOf(operation, answer);
      if (answer.status >= 500) problems.unshift(`answered with ${answer.status}`);
      if (problems.length > 0) throw new Error(problems.join('\n'));
    });
    await fc.assert(property, {
      seed: SEED + done,
      numRuns: Math.min(perWorld, CASES - done),
      endOnFailure: true,
    });
  }
}

describe(`${CASES} requests to every operation are answered as documented (FUZZ_SEED=${SEED})`, () => {
  test.each(contract.operations.map((operation) => [operation.name, operation] as const))(
    '%s',
    async (_name, operation) => {
      await tryCases(operation);
      expect(seen.get(operation.name)?.size ?? 0).toBeGreaterThan(isThorough ? 1 : 0);
    },
    600_000,
  );

  test('reach more than one status of nearly every operation', () => {
    const uniform = [...seen].filter(([, statuses]) => statuses.size === 1).map(([name]) => name);
    expect(uniform.length).toBeLessThan(contract.operations.length / 10);
  });
});

afterAll(() => {
  if (process.env.FUZZ_CASES === undefined) return;
  for (const [name, statuses] of seen) {
    const counts = [...statuses].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
    console.log(`${name.padEnd(100)} ${counts.join(', ')}`);
  }
});
