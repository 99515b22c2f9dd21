import { afterAll, describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { events } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { EVENT_KINDS } from '../../server/events/kinds.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';
import { rpc } from '../support/rpc.ts';
import { until } from '../support/until.ts';

const SERVER = join(import.meta.dir, '../../server');
/** Files that only list the kinds. */
const NAMING = ['events/kinds.ts', 'events/variables.ts', 'events/triggers.ts', 'events/triggers-system.ts'];

test('every event kind is emitted somewhere', () => {
  const files = readdirSync(SERVER, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !NAMING.includes(path))
    .map((path) => readFileSync(join(SERVER, path), 'utf8'))
    .join('\n');
  const written = (kind: string) => {
    const family = kind.replace(/_(succeeded|failed|stopped)$/, '');
    return files.includes(`'${kind}'`) || (family !== kind && files.includes(`\`${family}_\${`));
  };
  expect(Object.keys(EVENT_KINDS).filter((kind) => !written(kind))).toEqual([]);
});

const words = (text: string) => text.split(' ');
/** Interface decisions 5.2, column "extra variables"; the common ones are columns of the event. */
const CONNECTION = words(
  'connection_id connection_name kind status status_reason source_id source_name source_connector_name destination_id destination_name destination_connector_name tags notify_on_failure',
);
const RUN = [
  ...CONNECTION,
  ...words('connection_run_id run_number run_type trigger_type attempt skip_reason stopped_by'),
];
const ROWS = words('rows_read rows_loaded rows_rejected');
const ENDED = [
  ...RUN,
  ...ROWS,
  ...words('retry_count duration_ms bytes_loaded streams_total streams_failed error_code error_type error_origin'),
  ...words('error_message retryable window_start window_end credits_used duration_ms_mean duration_ms_std'),
  ...words('duration_ms_zscore rows_loaded_mean rows_loaded_std rows_loaded_zscore'),
];
const STREAM = [...RUN, ...ROWS, ...words('stream_id stream_name namespace rows_loaded_zscore rate_limited_until')];
const CONNECTOR = words('account_connector_id account_connector_name connector_type connector_name status_reason');
const USER = words('user_id email full_name role_names');

const service = await testDeps({ role: 'worker' });
const { db } = service.deps;
const { call } = testApi(service);
const make = makerOf(call);
const worker = await startWorker(service.deps);
afterAll(() => worker.stop());

/** Starts a run and waits for its end. */
async function ran(id: string): Promise<string> {
  const { body } = await call('POST', `/connections/${id}/run`);
  await until(async () => (await call('GET', `/connections/${id}/runs?limit=1`)).body[0].finished_at !== null);
  return body;
}

const good = await make.connection();
const broken = await make.connection({
  source_id: (await make.source({ streams: 2, fault: 'auth', fault_stream: 'stream_2' })).id,
});
const dead = await make.connection({ source_id: (await make.source({ fault: 'config' })).id });
const limited = await make.connection({
  source_id: (await make.source({ fault: 'rate_limit', rate_limit_ms: 60_000 })).id,
});
for (const { id } of [good, broken, dead]) await ran(id);
const waiting = (await call('POST', `/connections/${limited.id}/run`)).body;
await until(
  async () =>
    (await call('GET', `/connections/${limited.id}/runs/${waiting}/stream_runs`)).body[0].rate_limited_until !== null,
);
await call('POST', `/connections/${waiting}/stop`);
await until(async () => (await call('GET', `/connections/${limited.id}/runs?limit=1`)).body[0].status === 'stopped');
await call('POST', `/connections/${good.id}`, { status: 'paused' });
await call('POST', `/connections/${good.id}`, { status: 'active', description: 'changed' });
await call('DELETE', `/connections/${good.id}`);
const user = (await call('POST', '/users', { email: 'new@example.test', full_name: 'New' })).body;
const role = (await call('POST', '/roles', { name: 'Runner', permissions: ['connections.run'] })).body;
await call('POST', `/roles/${role.id}/users/${user.id}`);
await call('POST', `/users/${user.id}`, { is_active: false });
await call('POST', `/users/${user.id}`, { is_active: true });
await call('DELETE', `/roles/${role.id}/users/${user.id}`);
await call('POST', `/roles/${role.id}`, { description: 'Runs' });
await call('DELETE', `/roles/${role.id}`);
await call('DELETE', `/users/${user.id}`);
await rpc(call, 'users.rotateKey', {});
const written = await db.select().from(events).orderBy(events.id);

const EXPECTED: Record<string, string[]> = {
  ...Object.fromEntries(words('connection_created connection_deleted').map((kind) => [kind, CONNECTION])),
  ...Object.fromEntries(
    words('connection_updated connection_paused connection_resumed').map((kind) => [
      kind,
      [...CONNECTION, 'changed_fields'],
    ]),
  ),
  ...Object.fromEntries(words('queued started stopped').map((end) => [`connection_run_${end}`, RUN])),
  ...Object.fromEntries(words('succeeded failed partially_failed').map((end) => [`connection_${end}`, ENDED])),
  ...Object.fromEntries(words('succeeded failed rate_limited stopped').map((end) => [`stream_run_${end}`, STREAM])),
  ...Object.fromEntries(words('created reauth_required').map((end) => [`account_connector_${end}`, CONNECTOR])),
  ...Object.fromEntries(words('added disabled enabled removed').map((end) => [`user_${end}`, USER])),
  ...Object.fromEntries(words('created updated deleted').map((end) => [`role_${end}`, ['role_id', 'role_name']])),
  ...Object.fromEntries(
    words('assigned unassigned').map((end) => [`role_${end}`, words('role_id role_name user_id email')]),
  ),
  api_key_rotated: words('user_id email days_remaining'),
};

describe('an event has all its variables', () => {
  test.each(Object.entries(EXPECTED))('%s', (kind, names) => {
    const all = written.filter(({ event }) => event === kind);
    expect(all.length).toBeGreaterThan(0);
    for (const { payload } of all) expect(names.filter((name) => !(name in payload))).toEqual([]);
  });

  test('of a failed stream: the position and the reason', () => {
    const [failed] = written.filter(
      ({ event, connection_id }) => event === 'stream_run_failed' && connection_id === broken.id,
    );
    expect(failed?.payload).toMatchObject({
      stream_name: 'stream_2',
      run_number: 1,
      run_type: 'plain',
      trigger_type: 'api',
      attempt: 1,
      error_type: 'auth_error',
      error_origin: 'source',
      retryable: false,
    });
  });
});
