import { expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { type AccountConnectorRow, secretUses } from '../../db/schema/index.ts';
import { secretUseRecorder } from '../../server/connector-runtime/secret-uses.ts';
import { testDeps } from '../support/database.ts';

const { deps, account_id } = await testDeps();

function recorderOf(of: { account_id: string; account_connector_id: string }) {
  const row = { id: of.account_connector_id, account_id: of.account_id, secrets: 'sealed', ssh_tunnel: null };
  const use = { purpose: 'run' as const, actor: { type: 'system' as const, id: null } };
  return secretUseRecorder(deps, row as unknown as AccountConnectorRow, use);
}

const storedOf = (account_connector_id: string) =>
  deps.db
    .select({ host: secretUses.host, transaction: sql<string>`${secretUses}.xmin::text` })
    .from(secretUses)
    .where(eq(secretUses.account_connector_id, account_connector_id))
    .orderBy(secretUses.host);

test('uses that come while one is stored share a commit', async () => {
  const account_connector_id = Bun.randomUUIDv7();
  const record = recorderOf({ account_id, account_connector_id });
  await Promise.all(['a', 'b', 'c', 'd'].map(record));
  const stored = await storedOf(account_connector_id);
  expect(stored.map(({ host }) => host)).toEqual(['a', 'b', 'c', 'd']);
  expect(new Set(stored.map(({ transaction }) => transaction)).size).toBe(2);
});

test('a use that is refused fails alone', async () => {
  const account_connector_id = Bun.randomUUIDv7();
  const record = recorderOf({ account_id, account_connector_id });
  const refused = recorderOf({ account_id: Bun.randomUUIDv7(), account_connector_id });
  const outcomes = await Promise.allSettled([record('a'), refused('b'), record('c'), refused('d'), record('e')]);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled']);
  expect((await storedOf(account_connector_id)).map(({ host }) => host)).toEqual(['a', 'c', 'e']);
});
