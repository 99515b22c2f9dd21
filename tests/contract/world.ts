import { gzipSync } from 'node:zlib';
import { eq } from 'drizzle-orm';
import {
  accountConnectors,
  cases,
  events,
  networkLogSegments,
  oauthConsents,
  streamRuns,
  tasks,
  users,
  verifications,
} from '../../db/schema/index.ts';
import { refreshCatalog } from '../../server/catalog/discover.ts';
import { SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { manifestOf, streamOf } from '../connectors/manifest-support.ts';
import type { Call } from '../support/api.ts';
import type { TestDeps } from '../support/database.ts';
import { endRun } from '../support/pipeline.ts';

/** An account with objects of every kind: ids by the names of parameters and body keys. */
export type World = Record<string, string[]>;

/** The owner of the world, and the ids in an example of the document. */
export interface Whose {
  account_id: string;
  call: Call;
  source_id?: string;
  destination_id?: string;
}

export async function makeWorld(test: TestDeps, whose: Whose): Promise<World> {
  const { call } = whose;
  const make = async (path: string, body?: object) => {
    const answer = await call('POST', path, body);
    if (answer.status > 201) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  // The spare ones belong to no connection, so that they can be deleted.
  const spare_id = await insertConnector(test, { ...whose, type: 'destination', name: 'file' });
  const source_id = await insertConnector(test, { ...whose, id: whose.source_id, type: 'source', name: 'demo' });
  const destination_id = await insertConnector(test, {
    ...whose,
    id: whose.destination_id,
    type: 'destination',
    name: 'sample',
  });
  const connection = () => make('/connections', { name: unique(), source_id, destination_id, tags: ['sales'] });
  const [idle, busy] = [await connection(), await connection()];
  const [ended, live] = [await make(`/connections/${idle.id}/run`), await make(`/connections/${busy.id}/run`)];
  const stream_run_ids = await runWithLog(test, whose.account_id, ended);
  const plan = await make(`/connections/${idle.id}/run/preview`, {
    start_date: '2026-01-01',
    end_date: '2026-02-28',
    split: { unit: 'month', size: 1 },
  });
  const user = await make('/users', { email: `${unique()}@example.test`, full_name: 'Somebody' });
  const role = await make('/roles', { name: unique(), permissions: ['cases.update'] });
  const held = await make('/roles', { name: unique(), permissions: ['cases.update'] });
  await make(`/roles/${held.id}/users/${user.id}`);
  const trigger = await make('/automation/triggers', {
    name: unique(),
    rule: 'event == "connection_failed"',
    actions: [{ type: 'pause_connection' }],
  });
  const view = await make('/saved_views', { page: 'connections', name: unique(), query: 'tag=sales' });
  const added = await make('/custom_connectors', {
    name: `shop_${Bun.randomUUIDv7().replaceAll('-', '').slice(-12)}`,
    manifest: JSON.stringify(manifestOf([streamOf('orders')])),
  });
  const found = await test.deps.db.select().from(events).where(eq(events.account_id, whose.account_id)).limit(1);
  return {
    connection_id: [idle.id, busy.id],
    connection_run_id: [ended, live],
    stream_run_id: stream_run_ids,
    stream_id: idle.streams.map((stream: { id: string }) => stream.id),
    source_id: [source_id],
    destination_id: [destination_id],
    account_connector_id: [source_id, destination_id, spare_id],
    user_id: [user.id],
    role_id: [role.id, held.id],
    trigger_id: [trigger.id],
    case_id: [await insertCase(test, { account_id: whose.account_id, trigger_id: trigger.id })],
    plan_id: [plan.plan_id],
    task_id: [await insertTask(test, { account_id: whose.account_id, account_connector_id: source_id })],
    verification_id: [await insertVerification(test, { account_id: whose.account_id, connection_id: idle.id })],
    oauth_consent_id: [await insertConsent(test, whose.account_id)],
    saved_view_id: [view.id],
    event_id: found.map(({ id }) => id),
    connector_name: ['demo', 'sample', 'file'],
    custom_connector_name: [added.name],
    parameter_name: ['rows', 'seed'],
  };
}

const unique = () => `of-the-world-${Bun.randomUUIDv7()}`;

async function insertConnector(
  { deps }: TestDeps,
  what: { account_id: string; id?: string; type: 'source' | 'destination'; name: string },
): Promise<string> {
  const [row] = await deps.db
    .insert(accountConnectors)
    .values({
      ...(what.id !== undefined && { id: what.id }),
      account_id: what.account_id,
      name: unique(),
      connector_type: what.type,
      connector_name: what.name,
      status: 'active',
    })
    .returning();
  if (!row) throw new Error('no account connector was made');
  if (what.type === 'source') await refreshCatalog(deps, row, { actor: SYSTEM_ACTOR });
  return row.id;
}

/** Ends the run like a worker, with a log of the requests to its source. */
async function runWithLog({ deps }: TestDeps, account_id: string, id: string): Promise<string[]> {
  const started = { started_at: now() };
  await endRun(deps.db, id, 'succeeded', { run: started, streams: started });
  const rows = await deps.db.select().from(streamRuns).where(eq(streamRuns.connection_run_id, id));
  const object_key = `network-logs/${id}.gz`;
  await deps.objects.put(object_key, gzipSync('{"sequence":1}\n'));
  const segment = { account_id, connection_run_id: id, object_key, entries: 1, bytes: 17 };
  await deps.db
    .insert(networkLogSegments)
    .values(rows.map((row) => ({ ...segment, stream_run_id: row.id, connector_type: 'source' as const })));
  return rows.map((row) => row.id);
}

async function insertCase({ deps }: TestDeps, of: { account_id: string; trigger_id: string }): Promise<string> {
  const [row] = await deps.db
    .insert(cases)
    .values({
      ...of,
      number: Math.floor(Math.random() * 1e9),
      title: 'It failed',
      status: 'open',
      severity: 'warning',
      dedup_key: unique(),
      group: {},
      first_event_at: now(),
      last_event_at: now(),
      opened_at: now(),
    })
    .returning();
  if (!row) throw new Error('no case was made');
  return row.id;
}

async function insertTask(
  { deps }: TestDeps,
  of: { account_id: string; account_connector_id: string },
): Promise<string> {
  const [row] = await deps.db
    .insert(tasks)
    .values({ ...of, kind: 'discover_catalog', status: 'succeeded', result: {}, finished_at: now() })
    .returning();
  if (!row) throw new Error('no task was made');
  return row.id;
}

async function insertVerification(
  { deps }: TestDeps,
  of: { account_id: string; connection_id: string },
): Promise<string> {
  const [row] = await deps.db
    .insert(verifications)
    .values({ ...of, status: 'succeeded', finished_at: now() })
    .returning();
  if (!row) throw new Error('no verification was made');
  return row.id;
}

/** Begun by the first user of the account. */
async function insertConsent({ deps }: TestDeps, account_id: string): Promise<string> {
  const [first] = await deps.db
    .select({ user_id: users.id })
    .from(users)
    .where(eq(users.account_id, account_id))
    .orderBy(users.created_at)
    .limit(1);
  const begun = { connector_type: 'source', connector_name: 'http_api', sealed: '', expires_at: now() } as const;
  const [row] = await deps.db
    .insert(oauthConsents)
    .values({ ...begun, account_id, user_id: first!.user_id, state_hash: unique() })
    .returning();
  if (!row) throw new Error('no consent was made');
  return row.id;
}

const now = () => new Date().toISOString();
