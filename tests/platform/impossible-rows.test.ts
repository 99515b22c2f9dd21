import { beforeAll, describe, expect, test } from 'bun:test';
import { is, sql } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import { schemaComments } from '../../db/comments.ts';
import * as schema from '../../db/schema/index.ts';
import { testDeps } from '../support/database.ts';
import { makePipeline } from '../support/pipeline.ts';

const service = await testDeps();
const { db } = service.deps;
const UNKNOWN = '01900000-0000-7000-8000-000000000000';

const tables = Object.values<unknown>(schema).filter((one) => is(one, PgTable));

/** One possible row in each table. Every row has the id in `ids`, or that of the pipeline. */
const ids: Record<string, string> = { account: service.account_id, user: service.user_id };
beforeAll(async () => {
  const sample = { name: 'sample', parameters: {} };
  const { connection } = await makePipeline(service, { source: sample, destination: sample });
  const [stream] = await db.execute<{ id: string }>(
    sql`select id from connection_streams where connection_id = ${connection.id} limit 1`,
  );
  Object.assign(ids, { connection: connection.id, source: connection.source_id, stream: stream!.id });
  for (const name of [
    'run',
    'ended',
    'bare',
    'stream_run',
    'ended_stream',
    'plan',
    'trigger',
    'case',
    'event',
    'task',
    'verification',
    'key',
  ]) {
    ids[name] = Bun.randomUUIDv7();
  }
  for (const statement of SEED) await db.execute(sql.raw(filled(statement)));
});

const filled = (text: string) =>
  text.replaceAll(/\{(\w+)\}/g, (_, name: string) => `'${name === 'none' ? UNKNOWN : ids[name]!}'`);

const RUN = 'id, account_id, connection_id, number, run_type, trigger_type, queued_at, status, finished_at';
const STREAM_RUN =
  'id, account_id, connection_id, connection_run_id, stream_id, stream_name, sync_mode, destination_sync_mode';
const EVENT = 'id, account_id, event, category, severity, actor, resource, summary';
const TRIGGER = 'id, account_id, name, normalized_rule, actions, severity, group_by, case_settings';
const CASE =
  'id, account_id, number, title, status, severity, trigger_id, dedup_key, "group", first_event_at, last_event_at, opened_at';
const PLAN = 'id, account_id, connection_id, connection_revision, plan_hash, parameters, decision, expires_at';
const LEDGER =
  'id, account_id, connection_id, connection_run_id, stream_run_id, attempt, day, kind, stream_name, rows_free, rows_paid, credits_used, credits_free, bytes_loaded';
const HASH = "repeat('a', 64)";

const SEED = [
  `insert into connection_runs (${RUN}) values ({run}, {account}, {connection}, 101, 'plain', 'api', now(), 'running', null)`,
  `insert into connection_runs (${RUN}) values ({ended}, {account}, {connection}, 102, 'plain', 'api', now(), 'succeeded', now())`,
  `insert into connection_runs (${RUN}) values ({bare}, {account}, {connection}, 103, 'plain', 'api', now(), 'failed', now())`,
  `insert into stream_runs (${STREAM_RUN}, status, fence, heartbeat_at) values
    ({stream_run}, {account}, {connection}, {run}, {stream}, 'a', 'incremental', 'append', 'running', 7, now())`,
  `insert into stream_runs (${STREAM_RUN}, status, finished_at) values
    ({ended_stream}, {account}, {connection}, {ended}, {stream}, 'a', 'incremental', 'append', 'succeeded', now())`,
  `insert into custom_run_plans (${PLAN}) values ({plan}, {account}, {connection}, 1, ${HASH}, '{}', '{}', now() + interval '1 hour')`,
  `insert into triggers (${TRIGGER}, rule) values ({trigger}, {account}, 'late', 'true', '[]', 'high', '{}', '{}', 'true')`,
  `insert into events (${EVENT}) values ({event}, {account}, 'role_created', 'role', 'info', '{"type":"system"}', '{}', 'Made')`,
  `insert into cases (${CASE}) values ({case}, {account}, 900, 'It failed', 'open', 'high', {trigger}, 'k', '{}', now(), now(), now())`,
  `insert into case_timeline (id, case_id, type) values ({event}, {case}, 'opened')`,
  `insert into trigger_matches (event_id, trigger_id, fired) values ({event}, {trigger}, true)`,
  `insert into deliveries (id, account_id, event_id, trigger_id, case_id, action_index, type, reason) values
    ({event}, {account}, {event}, {trigger}, {case}, 0, 'call_webhook', 'opened')`,
  `insert into verifications (id, account_id, connection_id) values ({verification}, {account}, {connection})`,
  `insert into tasks (id, account_id, kind, account_connector_id) values ({task}, {account}, 'discover_catalog', {source})`,
  `insert into idempotency_keys (user_id, key, request_hash) values ({user}, 'k', 'h')`,
  `insert into usage_ledger (${LEDGER}) values ({task}, {account}, {connection}, {run}, {stream_run}, 1, now(), 'elt', 'a', 0, 1, 1, 0, 1)`,
  `insert into plan_limit_notices (account_id, "limit", period_start, threshold) values ({account}, 'max_users', now(), 80)`,
  `insert into change_readers (stream_id, source_id, next_look_at) values ({stream}, {source}, now())`,
  `insert into network_log_segments (id, account_id, connection_run_id, connector_type, object_key, entries, bytes) values
    ({task}, {account}, {run}, 'source', 'none', 1, 1)`,
  `insert into schema_changes (id, account_id, connection_id, stream_name, subject, after, breaking) values
    ({task}, {account}, {connection}, 'a', 'stream', '{}', false)`,
  `insert into audit_events (kind, action, actor_type) values ('call', 'connections.update', 'user')`,
  `insert into rejected_rows (id, account_id, stream_run_id, operation, key, code, message, status)
    values ({task}, {account}, {stream_run}, 'insert', '[1]', 'refused', 'No', 422)`,
  `insert into oauth_consents (id, account_id, user_id, connector_type, connector_name, state_hash, sealed, expires_at)
    values ({task}, {account}, {user}, 'source', 'http_api', 'h', 's', now() + interval '10 minutes')`,
  `insert into sessions (id, api_key_id, hash, expires_at) select {key}, id, 'h', now() + interval '1 day' from api_keys limit 1`,
];

/** Statements, by the reason why the row is impossible. */
const IMPOSSIBLE: [what: string, statement: string][] = [
  ['an ended run without an end', `update connection_runs set finished_at = null where id = {ended}`],
  ['a live run with an end', `update connection_runs set finished_at = now() where id = {run}`],
  [
    'a run that ends while a stream of it is live',
    `update connection_runs set status = 'failed', finished_at = now() where id = {run}`,
  ],
  [
    'an ended run that lives again',
    `update connection_runs set status = 'running', finished_at = null where id = {ended}`,
  ],
  ['a run in an unknown state', `update connection_runs set status = 'lost' where id = {run}`],
  ['a run of an unknown type', `update connection_runs set run_type = 'odd' where id = {run}`],
  ['a run that nothing triggered', `update connection_runs set trigger_type = 'chance' where id = {run}`],
  ['a stopping run without a request', `update connection_runs set status = 'stopping' where id = {run}`],
  [
    'a skipped run without a reason',
    `insert into connection_runs (${RUN}) values ({task}, {account}, {connection}, 104, 'plain', 'api', now(), 'skipped', now())`,
  ],
  ['a reason to skip a run that ran', `update connection_runs set skip_reason = 'overlap' where id = {run}`],
  [
    'a window that ends before it starts',
    `update connection_runs set window_start = '2026-02-01', window_end = '2026-01-01' where id = {run}`,
  ],
  ['a chunk without a plan', `update connection_runs set chunk_index = 0, chunk_count = 1 where id = {run}`],
  ['a plan without a chunk', `update connection_runs set custom_run_plan_id = {plan} where id = {run}`],
  [
    'a chunk beyond the last',
    `update connection_runs set custom_run_plan_id = {plan}, chunk_index = 2, chunk_count = 2 where id = {run}`,
  ],
  [
    'a chunk of an unknown plan',
    `update connection_runs set custom_run_plan_id = {none}, chunk_index = 0, chunk_count = 1 where id = {run}`,
  ],
  ['a rerun of itself', `update connection_runs set rerun_of_run_id = id where id = {run}`],
  ['a rerun of an unknown run', `update connection_runs set rerun_of_run_id = {none} where id = {run}`],
  ['a run number below 1', `update connection_runs set number = 0 where id = {run}`],
  ['negative credits', `update connection_runs set credits_used = -1 where id = {run}`],
  ['a run of an unknown account', `update connection_runs set account_id = {none} where id = {run}`],
  ['a run by an unknown user', `update connection_runs set triggered_by = {none} where id = {run}`],
  ['a lower fence', `update stream_runs set fence = 6 where id = {stream_run}`],
  ['a running stream that no worker claimed', `update stream_runs set heartbeat_at = null where id = {stream_run}`],
  ['an ended stream without an end', `update stream_runs set finished_at = null where id = {ended_stream}`],
  ['a live stream with an end', `update stream_runs set finished_at = now() where id = {stream_run}`],
  [
    'an ended stream that lives again',
    `update stream_runs set status = 'pending', finished_at = null where id = {ended_stream}`,
  ],
  [
    'a live stream of an ended run',
    `insert into stream_runs (${STREAM_RUN}, status) values
      ({task}, {account}, {connection}, {bare}, {stream}, 'a', 'incremental', 'append', 'pending')`,
  ],
  ['a stream run in an unknown state', `update stream_runs set status = 'lost' where id = {stream_run}`],
  ['fewer than no rows', `update stream_runs set rows_loaded = -1 where id = {stream_run}`],
  ['an unknown sync mode', `update connection_streams set sync_mode = 'sometimes' where id = {stream}`],
  [
    'an unknown destination sync mode',
    `update connection_streams set destination_sync_mode = 'sideways' where id = {stream}`,
  ],
  ['fields that are not a list', `update connection_streams set fields = '{}' where id = {stream}`],
  ['a state version below 0', `update connection_streams set state_version = -1 where id = {stream}`],
  [
    'a connection from a connector to itself',
    `update connections set destination_id = source_id where id = {connection}`,
  ],
  ['a connection in an unknown state', `update connections set status = 'gone' where id = {connection}`],
  [
    'an unlocked connection that remembers its lock',
    `update connections set locked_from = '{"status":"active","reason":null}' where id = {connection}`,
  ],
  [
    'a deleted connection with a next run',
    `update connections set deleted_at = now(), next_run_at = now() where id = {connection}`,
  ],
  ['an unknown kind of schedule', `update connections set schedule = '{"type":"whenever"}' where id = {connection}`],
  ['no parallel streams', `update connections set max_parallel_streams = 0 where id = {connection}`],
  ['a lookback window of a negative length', `update connections set backfill_days = -1 where id = {connection}`],
  ['a connection edited by an unknown user', `update connections set updated_by = {none} where id = {connection}`],
  [
    'a connector that is neither source nor destination',
    `update account_connectors set connector_type = 'both' where id = {source}`,
  ],
  ['a connector in an unknown state', `update account_connectors set status = 'fine' where id = {source}`],
  [
    'a ready catalog that was never read',
    `update account_connectors set catalog_status = 'ready', catalog_refreshed_at = null where id = {source}`,
  ],
  ['an unknown way to sign in', `update account_connectors set auth_method = 'smile' where id = {source}`],
  ['a change of nothing', `update schema_changes set before = null, after = null`],
  ['a changed field without a path', `update schema_changes set subject = 'field'`],
  ['a plan whose hash is not one', `update custom_run_plans set plan_hash = 'x' where id = {plan}`],
  ['a launched plan without a response', `update custom_run_plans set launched_at = now() where id = {plan}`],
  ['an expired plan from the start', `update custom_run_plans set expires_at = created_at where id = {plan}`],
  ['a verification that ended without an end', `update verifications set status = 'failed' where id = {verification}`],
  [
    'a successful verification with an error',
    `update verifications set status = 'succeeded', finished_at = now(), error = '{}' where id = {verification}`,
  ],
  ['a task that ended without an end', `update tasks set status = 'succeeded' where id = {task}`],
  ['a failed task without an error', `update tasks set status = 'failed', finished_at = now() where id = {task}`],
  ['an audit entry without a kind', `insert into audit_events (kind, action, actor_type) values ('odd', 'x', 'user')`],
  [
    'an audit entry of a change of nothing',
    `insert into audit_events (kind, action, actor_type) values ('change', 'x', 'user')`,
  ],
  [
    'a refusal without a code',
    `insert into audit_events (kind, action, actor_type, outcome) values ('refusal', 'x', 'user', 'refused')`,
  ],
  [
    'an audit entry that never occurred',
    `insert into audit_events (kind, action, actor_type, count) values ('call', 'x', 'user', 0)`,
  ],
  ['an edited audit entry', `update audit_events set action = 'other'`],
  [
    'a seal that ends before it begins',
    `insert into audit_seals (id, first_seq, last_seq, seqs, hash, mac) values (1, 2, 1, '{}', 'h', 'm')`,
  ],
  ['a task of an unknown connector', `update tasks set account_connector_id = {none} where id = {task}`],
  ['an event of an unknown category', `update events set category = 'weather' where id = {event}`],
  ['an event of an unknown severity', `update events set severity = 'mild' where id = {event}`],
  ['an event of an unknown actor', `update events set actor = '{}' where id = {event}`],
  ['an event of an unknown account', `update events set account_id = {none} where id = {event}`],
  ['a resolved case without its end', `update cases set status = 'resolved' where id = {case}`],
  ['an open case with an end', `update cases set resolved_at = now(), resolution = 'auto' where id = {case}`],
  ['an acknowledged case without its moment', `update cases set status = 'acknowledged' where id = {case}`],
  [
    'a case that ends before it begins',
    `update cases set last_event_at = first_event_at - interval '1 day' where id = {case}`,
  ],
  ['an entry of an unknown type', `update case_timeline set type = 'pondered'`],
  ['a delivered action without its moment', `update deliveries set status = 'delivered'`],
  ['an unknown action', `update deliveries set type = 'sing'`],
  ['a trigger with neither rule nor condition', `update triggers set rule = null where id = {trigger}`],
  ['a trigger that fires at no event', `update triggers set threshold = 0 where id = {trigger}`],
  ['a user in an unknown state', `update users set status = 'asleep' where id = {user}`],
  ['an address without a host', `update users set email = 'ada' where id = {user}`],
  ['a system role of one account', `update roles set account_id = {account} where is_system`],
  ['an account on an unknown plan', `update accounts set plan_id = 'gold' where id = {account}`],
  ['a session that was over before it began', `update sessions set expires_at = created_at`],
  ['an answer without its status', `update idempotency_keys set sealed_body = 'x'`],
  ['usage of a negative number of rows', `update usage_ledger set rows_paid = -1`],
  ['a notice of more than all', `update plan_limit_notices set threshold = 101`],
  ['a log without entries', `update network_log_segments set entries = 0`],
  ['an invited service account', `update users set kind = 'service_account', status = 'invited' where id = {user}`],
  ['a response without a status of HTTP', `update rejected_rows set status = 1`],
  ['an unknown operation on a row', `update rejected_rows set operation = 'sing'`],
  ['rejected rows of an unknown stream run', `update rejected_rows set stream_run_id = {none}`],
  ['a failed consent without an error', `update oauth_consents set status = 'failed'`],
  ['a consent in an unknown state', `update oauth_consents set status = 'perhaps'`],
  ['fewer than no wrong codes', `update oauth_consents set wrong_codes = -1`],
  ['a consent of an unknown user', `update oauth_consents set user_id = {none}`],
  ['a CDC consumer of an unknown source', `update change_readers set source_id = {none}`],
];

const CHECK_VIOLATION = '23514';
const FOREIGN_KEY_VIOLATION = '23503';

describe('the control database', () => {
  test.each(IMPOSSIBLE)('refuses %s', async (_, statement) => {
    const refused = await db.execute(sql.raw(filled(statement))).then(
      () => null,
      (error: Error) => (error.cause as { code?: string }).code,
    );
    expect([CHECK_VIOLATION, FOREIGN_KEY_VIOLATION]).toContain(refused ?? 'accepted');
  });

  test('knows exactly the values that the code knows', async () => {
    const rows = await db.execute<{ name: string; text: string }>(
      sql`select conname as name, pg_get_constraintdef(oid) as text from pg_constraint where contype = 'c'`,
    );
    const known = new Map(rows.map(({ name, text }) => [name, [...text.matchAll(/'([^']*)'/g)].map(([, one]) => one)]));
    for (const table of tables) {
      const { name, columns } = getTableConfig(table);
      for (const column of columns.filter((one) => one.enumValues)) {
        expect([`${name}.${column.name}`, known.get(`${name}_${column.name}_known`)]).toEqual([
          `${name}.${column.name}`,
          column.enumValues,
        ]);
      }
    }
  });

  test('knows the states of runs in its triggers', async () => {
    const [found] = await db.execute<{ runs: string; streams: string; both: string }>(sql`select
      pg_get_triggerdef((select oid from pg_trigger where tgname = 'connection_runs_end_is_final')) as runs,
      pg_get_triggerdef((select oid from pg_trigger where tgname = 'stream_runs_end_is_final')) as streams,
      pg_get_functiondef('refuse_live_stream_of_ended_run'::regproc) as both`);
    const named = (text: string) =>
      schema.RUN_STATUSES.concat(schema.STREAM_RUN_STATUSES as never).filter((one) => text.includes(`'${one}'`));
    const sorted = (list: readonly string[]) => [...new Set(list)].toSorted();
    expect(sorted(named(found!.runs))).toEqual(sorted(schema.LIVE_RUN));
    expect(sorted(named(found!.streams))).toEqual(sorted(schema.LIVE_STREAM_RUN));
    expect(sorted(named(found!.both))).toEqual(sorted([...schema.LIVE_RUN, ...schema.LIVE_STREAM_RUN]));
  });

  test('explains every table, and the columns that the schema explains, in the same words', async () => {
    const rows = await db.execute<{ place: string; text: string | null }>(sql`
      select c.relname as place, obj_description(c.oid) as text from pg_class c
      where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
      union all
      select table_name || '.' || column_name, col_description(format('%I', table_name)::regclass, ordinal_position)
      from information_schema.columns where table_schema = 'public'`);
    const stored = new Map(rows.map(({ place, text }) => [place, text]));
    expect(tables.map((table) => getTableConfig(table).name).filter((name) => !stored.get(name))).toEqual([]);
    for (const { table, column, text } of schemaComments()) {
      const place = column === null ? table : `${table}.${column}`;
      expect([place, stored.get(place)]).toEqual([place, text]);
    }
  });

  // Entries of the audit log outlive the account.
  test('has an account behind every row that names one', async () => {
    const missing = await db.execute<{ table: string }>(sql`
      select table_name as table from information_schema.columns c
      where table_schema = 'public' and column_name = 'account_id' and table_name <> 'audit_events' and not exists (
        select from pg_constraint where contype = 'f' and confrelid = 'accounts'::regclass
          and conrelid = format('%I', c.table_name)::regclass)`);
    expect(missing.map(({ table }) => table)).toEqual([]);
  });
});
