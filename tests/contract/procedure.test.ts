import { describe, expect, test } from 'bun:test';
import { z } from 'zod';
import { eq, sql } from 'drizzle-orm';
import { accounts, auditEvents } from '../../db/schema/index.ts';
import { badRequest } from '../../server/platform/errors.ts';
import { act, type ActCtx, type CallContext, type Ctx, router, write } from '../../server/api/procedure.ts';
import { rest } from '../../server/api/endpoint.ts';
import { keysOf } from '../../server/api/request-parser.ts';
import { proceduresOf } from '../../server/http/rest.ts';
import { appRouter, restRouter } from '../../server/router.ts';
import { testDeps } from '../support/database.ts';

const context = await testDeps();
const { db } = context.deps;

async function renameThenFail(ctx: Ctx, name: string): Promise<void> {
  await ctx.db.update(accounts).set({ name }).where(eq(accounts.id, context.account_id));
  throw badRequest('too_late', 'Found out after the change');
}

const renameInChange = (ctx: ActCtx, name: string) => ctx.change((tx) => tx.update(accounts).set({ name }));

const caller = router({
  inTransaction: write(null).mutation(({ ctx }) => renameThenFail(ctx, 'in a transaction')),
  outside: act(null).mutation(({ ctx }) => renameThenFail(ctx, 'outside')),
  changing: act(null).mutation(async ({ ctx }) => void (await renameInChange(ctx, 'changed'))),
  failing: act(null).mutation(({ ctx }) => ctx.change((tx) => renameThenFail({ ...ctx, db: tx }, 'failed'))),
}).createCaller(
  (): CallContext => ({
    deps: context.deps,
    request_id: 'test',
    address: () => '',
    user_agent: null,
    authorization: `Bearer ${context.api_key}`,
    setHeader: () => {},
  }),
);

const accountName = async () => {
  const [account] = await db.select().from(accounts).where(eq(accounts.id, context.account_id));
  return account?.name;
};

describe('a change', () => {
  test('by `write` that fails leaves nothing', async () => {
    const before = await accountName();
    await expect(caller.inTransaction()).rejects.toMatchObject({ cause: { code: 'too_late' } });
    expect(await accountName()).toBe(before);
  });

  test('by `act` that fails stays, because it runs outside a transaction', async () => {
    await expect(caller.outside()).rejects.toMatchObject({ cause: { code: 'too_late' } });
    expect(await accountName()).toBe('outside');
  });
});

describe('the change of an `act`', () => {
  const entriesOf = (action: string) =>
    db
      .select({ kind: auditEvents.kind, transaction: sql<string>`${auditEvents}.xmin::text` })
      .from(auditEvents)
      .where(eq(auditEvents.action, action));

  test('stores the entry of the call once, in its transaction', async () => {
    await caller.changing();
    expect(await accountName()).toBe('changed');
    const entries = await entriesOf('changing');
    expect(entries.map(({ kind }) => kind).toSorted()).toEqual(['call', 'change']);
    expect(new Set(entries.map(({ transaction }) => transaction)).size).toBe(1);
  });

  test('leaves neither change nor entry if it fails', async () => {
    await expect(caller.failing()).rejects.toMatchObject({ cause: { code: 'too_late' } });
    expect(await accountName()).toBe('changed');
    expect(await entriesOf('failing')).toEqual([]);
  });
});

describe('an input', () => {
  test('gives every key of path, query and body to one part alone, in every operation', () => {
    const served = proceduresOf([appRouter, restRouter]);
    expect(served.length).toBeGreaterThan(50);
    for (const { endpoint } of served) {
      const { method, path, params, query, query_key, body, body_key } = endpoint;
      const keys = [
        ...Object.keys(params.shape),
        ...(query_key === null ? Object.keys(query.shape) : [query_key]),
        ...(body_key === null ? keysOf(body) : [body_key]),
      ];
      expect([`${method} ${path}`, keys.length]).toEqual([`${method} ${path}`, new Set(keys).size]);
    }
  });

  test('is refused at its declaration when two parts share a key', () => {
    const query = z.object({ start_date: z.string() });
    const body = z.union([z.strictObject({ name: z.string() }), z.strictObject({ start_date: z.string() }).nullable()]);
    expect(() => rest('POST', '/of/{name}', { query })).not.toThrow();
    expect(() => rest('POST', '/of/{id}', { query, body })).toThrow('start_date');
    expect(() => rest('POST', '/of/{name}', { body })).toThrow('name');
    expect(() => rest('POST', '/of/{id}', { query, query_key: 'range', body })).not.toThrow();
  });
});
