import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accounts } from '../../db/schema/index.ts';
import { badRequest } from '../../server/platform/errors.ts';
import { act, type CallContext, type Ctx, router, write } from '../../server/api/procedure.ts';
import { testDeps } from '../support/database.ts';

const context = await testDeps();
const { db } = context.deps;

async function renameThenFail(ctx: Ctx, name: string): Promise<void> {
  await ctx.db.update(accounts).set({ name }).where(eq(accounts.id, context.account_id));
  throw badRequest('too_late', 'Found out after the change');
}

const caller = router({
  inTransaction: write(null).mutation(({ ctx }) => renameThenFail(ctx, 'in a transaction')),
  outside: act(null).mutation(({ ctx }) => renameThenFail(ctx, 'outside')),
}).createCaller(
  (): CallContext => ({
    deps: context.deps,
    request_id: 'test',
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
