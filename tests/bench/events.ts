/**
 * `bun tests/bench/events.ts [seconds]`: events evaluated against 200 triggers, by one worker on the embedded database:
 * a steady 1,000 events/s with the time from event to evaluation, and a backlog of 20,000 as fast as it goes. Then 2,000
 * events that all fire, each second one opening a case with a webhook and the rest extending them, and the time from
 * event to delivered webhook beside the steady load. Receiver and worker share this process.
 */
import { sql } from 'drizzle-orm';
import { startEmbeddedPostgres } from '../../db/embedded.ts';
import { openDatabase } from '../../db/index.ts';
import { migrateDatabase } from '../../db/migrate.ts';
import { triggers } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { bootstrap } from '../../server/process/bootstrap.ts';
import { readConfig } from '../../server/platform/config.ts';
import { closeDeps, createDeps } from '../../server/deps.ts';
import { deliverActionJob } from '../../server/automation/delivery/deliver.ts';
import { evaluatePending, startEvaluator } from '../../server/automation/evaluation/evaluation-loop.ts';
import { compileRule } from '../../server/automation/rules/compile.ts';
import { DEFAULT_CASE_SETTINGS } from '../../server/automation/triggers/trigger-index.ts';
import { deliverAction } from '../../server/queue/jobs.ts';
import { scratchFolder } from './scratch.ts';

const SECONDS = Number(process.argv[2] ?? 20);
const PER_SECOND = 1000;
const BACKLOG = 20_000;
const KINDS = [
  'connection_failed',
  'connection_succeeded',
  'stream_run_failed',
  'stream_run_succeeded',
  'connection_partially_failed',
];

const FIRING_TRIGGERS = 100;
const FIRING_GROUPS = 1000;
const WEBHOOK_GOAL_MS = 500;

/** Arrival of each event's webhook. */
const received = new Map<string, number>();
const receiver = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { payload } = (await request.json()) as { payload: { account_connector_id: string } };
    received.set(payload.account_connector_id, performance.now());
    return new Response(null, { status: 204 });
  },
});

const connectorId = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

const dataDir = scratchFolder();
const server = await startEmbeddedPostgres({ dataDir, ephemeral: true });
const url = server.url('pipelines');
await migrateDatabase(url);
const config = readConfig({
  DATA_DIR: dataDir,
  SECRET_KEY: 'a secret key that only the bench uses, 0123456789',
  EGRESS_ALLOW: `127.0.0.1:${receiver.port}`,
  LOG_LEVEL: 'warn',
});
const deps = await createDeps(config, url, 'worker');
const writer = openDatabase(url, { max: 2 });
try {
  const { account_id } = await bootstrap(deps.db, { secrets: deps.secrets, config });
  await makeTriggers(deps.db, account_id);
  await evaluatePending(deps);
  await backlog(account_id);
  await steady(account_id);
  await makeFiringTriggers(deps.db, account_id);
  await deps.queue.work(deliverAction, deliverAction.concurrency ?? 4, ({ delivery_id }, signal) =>
    deliverActionJob(deps, delivery_id, signal),
  );
  await firings(account_id);
  await webhooks(account_id, 0);
  await webhooks(account_id, PER_SECOND / 4);
  await webhooks(account_id, PER_SECOND);
} finally {
  await receiver.stop(true);
  await deps.queue.stop();
  await writer.close();
  await closeDeps(deps);
  await server.stop();
}

/** Forty a kind. About one event in a hundred matches one of them. */
async function makeTriggers(db: Db, account_id: string): Promise<void> {
  const rows = Array.from({ length: 200 }, (_, at) => {
    const kind = KINDS[at % KINDS.length]!;
    const shapes = [
      `event == "${kind}" && retry_count >= 3 && connection_name == "orders ${at}"`,
      `event == "${kind}" && "prod" in tags && rows_loaded == 0 && rows_loaded_zscore < -${3 + at}.0`,
      `event == "${kind}" && regex_matches(connection_name, "^(sales|billing) ${at}$")`,
      `event in ["${kind}", "user_added"] && rows_loaded > ${10_000 + at} && !(source_connector_name in ["postgres", "mysql"])`,
    ];
    const compiled = compileRule(shapes[at % shapes.length]!);
    return {
      account_id,
      name: `bench ${at}`,
      rule: compiled.normalized,
      normalized_rule: compiled.normalized,
      matched_kinds: compiled.kinds,
      actions: [],
      severity: 'warning' as const,
      group_by: ['connection_id'],
      case_settings: { ...DEFAULT_CASE_SETTINGS },
    };
  });
  await db.insert(triggers).values(rows);
}

/** Each fires once for each connector of its name and calls the receiver. */
async function makeFiringTriggers(db: Db, account_id: string): Promise<void> {
  const hook = `http://127.0.0.1:${receiver.port}/hook`;
  const rows = Array.from({ length: FIRING_TRIGGERS }, (_, at) => {
    const compiled = compileRule(`event == "account_connector_broken" && connector_name == "firing ${at}"`);
    return {
      account_id,
      name: `firing ${at}`,
      rule: compiled.normalized,
      normalized_rule: compiled.normalized,
      matched_kinds: compiled.kinds,
      actions: [{ type: 'call_webhook', url: hook, headers: {}, secret: null, payload_template: null }],
      severity: 'warning' as const,
      group_by: ['account_connector_id'],
      case_settings: { ...DEFAULT_CASE_SETTINGS },
    };
  });
  await db.insert(triggers).values(rows);
}

/** Breaks connectors from `first` on, `times` each. Those whose numbers end alike belong to one trigger. */
async function breakConnectors(account_id: string, broken: { first: number; count: number; times: number }) {
  const { first, count, times } = broken;
  await writer.db.execute(sql`
    insert into events (id, account_id, event, category, severity, actor, resource, summary, account_connector_id, payload)
    select uuidv7(), ${account_id}, 'account_connector_broken', 'account_connector', 'high',
      '{"type": "system", "id": null, "name": null}', '{"type": "account_connector", "id": "x", "name": "x"}', 'bench', id,
      jsonb_build_object('account_connector_id', id, 'account_connector_name', 'bench', 'connector_name', 'firing ' || n % ${FIRING_TRIGGERS})
    from generate_series(1, ${times}) again, generate_series(${first}::int, ${first + count - 1}::int) n,
      lateral (select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid as id) named`);
  await writer.db.execute(sql`select pg_notify('events', '')`);
}

async function firings(account_id: string): Promise<void> {
  await breakConnectors(account_id, { first: 0, count: FIRING_GROUPS, times: 2 });
  const begun = performance.now();
  await evaluatePending(deps);
  const evaluated = (performance.now() - begun) / 1000;
  const [made] = await deps.db.execute<{ cases: number; events: number }>(
    sql`select count(*)::int as cases, sum(event_count)::int as events from cases where account_connector_id is not null`,
  );
  await allReceived(FIRING_GROUPS);
  const delivered = (performance.now() - begun) / 1000;
  console.log(
    `firing: ${made?.events} events in ${made?.cases} cases in ${evaluated.toFixed(1)} s, ` +
      `${Math.round((made?.events ?? 0) / evaluated)} events/s; ${received.size} webhooks delivered after ` +
      `${delivered.toFixed(1)} s, ${Math.round(received.size / delivered)} webhooks/s`,
  );
}

/** One connector breaks ten times a second, alone or beside 1,000 events/s that match no trigger. */
async function webhooks(account_id: string, beside: number): Promise<void> {
  const evaluator = await startEvaluator(deps);
  const sent = new Map<string, number>();
  const before = received.size;
  const begun = performance.now();
  for (let tick = 0; tick < SECONDS * 10; tick += 1) {
    const n = before + tick;
    await breakConnectors(account_id, { first: n, count: 1, times: 1 });
    sent.set(connectorId(n), performance.now());
    if (beside > 0) await write(account_id, beside / 10);
    await Bun.sleep(Math.max(0, begun + (tick + 1) * 100 - performance.now()));
  }
  await allReceived(before + SECONDS * 10);
  await evaluator.stop();
  const times = [...sent].map(([id, at]) => (received.get(id) ?? Number.NaN) - at).toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(times[Math.floor(times.length * share)] ?? Number.NaN);
  console.log(
    `${at(0.5) <= WEBHOOK_GOAL_MS ? 'reached' : 'MISSED '} event to delivered webhook beside ${beside} other events/s: ` +
      `${at(0.5)} ms (median), ${at(0.95)} ms (95 %) of ${times.length}, goal ${WEBHOOK_GOAL_MS} ms`,
  );
}

async function allReceived(count: number): Promise<void> {
  for (const deadline = performance.now() + 120_000; received.size < count; await Bun.sleep(10)) {
    if (performance.now() > deadline) throw new Error(`only ${received.size} of ${count} webhooks came`);
  }
}

/** One statement inserts them, as many transactions would have left them. */
async function write(account_id: string, count: number): Promise<void> {
  await writer.db.execute(sql`
    insert into events (id, account_id, event, category, severity, actor, resource, summary, connection_id, payload)
    select uuidv7(), ${account_id}, (array[${sql.join(
      KINDS.map((kind) => sql`${kind}`),
      sql`, `,
    )}])[1 + i % ${KINDS.length}], 'run', 'info',
      '{"type": "system", "id": null, "name": null}', '{"type": "connection", "id": "x", "name": "x"}', 'bench',
      ('00000000-0000-4000-8000-0000000000' || lpad((i % 100)::text, 2, '0'))::uuid,
      jsonb_build_object('retry_count', i % 5, 'connection_name', 'orders ' || (random() * 2000)::int, 'tags', '["prod"]'::jsonb,
        'rows_loaded', 1 + i % 1000, 'rows_loaded_zscore', 0.5, 'source_connector_name', 'postgres')
    from generate_series(1, ${count}) i`);
  await writer.db.execute(sql`select pg_notify('events', '')`);
}

async function backlog(account_id: string): Promise<void> {
  await write(account_id, BACKLOG);
  const begun = performance.now();
  const done = await evaluatePending(deps);
  const seconds = (performance.now() - begun) / 1000;
  console.log(
    `backlog: ${done} events in ${seconds.toFixed(1)} s, ${Math.round(done / seconds)} events/s against 200 triggers`,
  );
}

async function steady(account_id: string): Promise<void> {
  const evaluator = await startEvaluator(deps);
  const cpu = process.cpuUsage();
  const lags: number[] = [];
  const begun = performance.now();
  for (let tick = 1; tick <= SECONDS * 10; tick += 1) {
    await write(account_id, PER_SECOND / 10);
    const written = performance.now();
    if (tick % 5 === 0) await processed().then(() => lags.push(performance.now() - written));
    await Bun.sleep(Math.max(0, begun + tick * 100 - performance.now()));
  }
  const seconds = (performance.now() - begun) / 1000;
  await processed();
  const after = performance.now() / 1000 - begun / 1000 - seconds;
  const used = process.cpuUsage(cpu);
  const cores = (used.user + used.system) / 1e6 / seconds;
  await evaluator.stop();
  const sorted = lags.toSorted((a, b) => a - b);
  const at = (share: number) => `${Math.round(sorted[Math.floor(sorted.length * share)] ?? 0)} ms`;
  const rate = Math.round((SECONDS * PER_SECOND) / seconds);
  console.log(
    `${rate >= PER_SECOND * 0.98 && after < 1 ? 'reached' : 'MISSED '} steady: ${rate} events/s for ${SECONDS} s, ` +
      `${cores.toFixed(2)} cores of the worker; a hundred events are evaluated after ${at(0.5)} (median), ${at(0.95)} (95 %)`,
  );
}

async function processed(): Promise<void> {
  for (;;) {
    const [row] = await writer.db.execute<{ waits: boolean }>(
      sql`select exists (select from events where processing_status in ('received', 'evaluating')) as waits`,
    );
    if (!row?.waits) return;
    await Bun.sleep(5);
  }
}
