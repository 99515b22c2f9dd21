import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accounts, networkLogSegments } from '../../db/schema/index.ts';
import { deleteOldNetworkLogs } from '../../server/connector-runtime/network-log-retention.ts';
import { testDeps } from '../support/database.ts';
import { makePipeline } from '../support/pipeline.ts';

const service = await testDeps();
const { deps, account_id } = service;
const { db, objects } = deps;
const sample = { name: 'sample', parameters: {} };
const pipeline = await makePipeline(service, { source: sample, destination: sample });
const connection_run_id = await pipeline.start();

/** Stores a log of this age and returns its object key. */
async function logOf(days: number): Promise<string> {
  const object_key = `network_logs/${Bun.randomUUIDv7()}`;
  await objects.put(object_key, new Uint8Array([1]));
  const created_at = new Date(Date.now() - days * 86_400_000 - 60_000).toISOString();
  const rest = { connector_type: 'source', entries: 1, bytes: 1 } as const;
  await db.insert(networkLogSegments).values({ account_id, connection_run_id, object_key, created_at, ...rest });
  return object_key;
}

const kept = async () => (await db.select().from(networkLogSegments)).map(({ object_key }) => object_key);

describe('network logs', () => {
  test.each([
    ['self_hosted', 14],
    ['free', 7],
    ['pro', 14],
    ['enterprise', 14],
  ] as const)('on the plan %s are deleted after %d days, file and row, and not before', async (plan_id, days) => {
    await db.update(accounts).set({ plan_id }).where(eq(accounts.id, account_id));
    const [old, young] = [await logOf(days), await logOf(days - 1)];
    await Promise.all([deleteOldNetworkLogs(deps), deleteOldNetworkLogs(deps)]);
    expect(await kept()).toEqual([young]);
    expect(await objects.get(old)).toBeNull();
    expect(await objects.get(young)).not.toBeNull();
    await db.delete(networkLogSegments);
  });
});
