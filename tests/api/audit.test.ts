import { describe, expect, test } from 'bun:test';
import { is, type SQL, sql } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import pino from 'pino';
import { AUDITED, auditedColumns } from '../../db/audit-triggers.ts';
import * as schema from '../../db/schema/index.ts';
import { type AuditProblem, sealAudit, verifyAccountAudit, verifyAudit } from '../../server/api/audit/chain.ts';
import { flushRefusals } from '../../server/api/audit/refusals.ts';
import { createApp } from '../../server/http/app.ts';
import { appRouter, restRouter } from '../../server/router.ts';
import { testApi } from '../support/api.ts';
import { openTestDeps, testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';
import { rpc, rpcQuery } from '../support/rpc.ts';
import { readContract } from '../contract/document.ts';
import { makeWorld } from '../contract/world.ts';

const t = await testDeps();
const { deps } = t;
const { db } = deps;
const api = testApi(t);
const make = makerOf(api.call);

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
type Json = any;

const list = async (query: Record<string, string>): Promise<Json[]> => {
  const { status, body } = await api.call('GET', `/audit_log?${new URLSearchParams(query).toString()}`);
  expect(status).toBe(200);
  return body;
};
/** The entries of one request, oldest first. */
const entriesOf = async (request_id: string) => (await list({ request_id })).toReversed();
const asRequest = (request_id: string) => ({ 'x-request-id': request_id, 'user-agent': 'audit-test/1' });
/** As an attacker with the rights of the database's owner, who leaves the triggers out. */
const tamper = (statement: string) =>
  db.transaction(async (tx) => {
    await tx.execute(sql`set local session_replication_role = replica`);
    await tx.execute(sql.raw(statement));
  });

describe('a change', () => {
  test('leaves the call and each changed row with before and after, actor, key, agent and request', async () => {
    const connection = await make.connection({ name: 'Orders' });
    const id = connection.id as string;
    const { status } = await api.call(
      'POST',
      `/connections/${id}`,
      { name: 'Orders, daily', tags: ['sales'] },
      asRequest('change-1'),
    );
    expect(status).toBe(200);
    const caller = {
      action: 'connections.update',
      outcome: 'succeeded',
      actor: { type: 'user', id: t.user_id, name: 'Administrator' },
      api_key_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      user_agent: 'audit-test/1',
      request_id: 'change-1',
      account_id: t.account_id,
    };
    expect(await entriesOf('change-1')).toMatchObject([
      { ...caller, kind: 'call', resource: { type: 'connection', id, name: null } },
      {
        ...caller,
        kind: 'change',
        operation: 'update',
        resource: { type: 'connection', id, name: 'Orders, daily' },
        before: { name: 'Orders', tags: [] },
        after: { name: 'Orders, daily', tags: ['sales'] },
      },
    ]);
  });

  test('of a secret says that it changed, never what it is', async () => {
    const body = {
      connector_type: 'destination',
      connector_name: 'postgres',
      name: 'Warehouse',
      test_connection: false,
    };
    const parameters = { host: 'db.example.test', database: 'w', username: 'loader', password: 'first-secret-word' };
    const created = await api.call('POST', '/account_connectors', { ...body, parameters }, asRequest('secret-1'));
    expect(created.status).toBe(201);
    const changeIn = async (request_id: string) => (await entriesOf(request_id)).find(({ kind }) => kind === 'change');
    expect(await changeIn('secret-1')).toMatchObject({
      operation: 'create',
      before: null,
      after: { name: 'Warehouse', secrets: 'set' },
    });
    const edit = { parameters: { ...parameters, password: 'second-secret-word' }, test_connection: false };
    await api.call('POST', `/account_connectors/${created.body.id}`, edit, asRequest('secret-2'));
    expect(await changeIn('secret-2')).toMatchObject({
      before: { secrets: 'set' },
      after: { secrets: 'changed' },
    });
    const stored = JSON.stringify(await db.select().from(schema.auditEvents));
    expect(stored).not.toMatch(/secret-word|"v1\.[0-9a-f]{8}\./);
  });

  test('that fails leaves nothing; one by the service itself has the actor system', async () => {
    const id = (await make.connection()).id as string;
    const failed = await api.call('POST', `/connections/${id}`, { name: '' }, asRequest('failed-1'));
    expect(failed.status).toBe(422);
    expect(await entriesOf('failed-1')).toEqual([]);
    await db.execute(sql`update connections set status = 'auto_disabled' where id = ${id}`);
    const [entry] = await list({ resource_id: id });
    expect(entry).toMatchObject({ action: 'system', actor: { type: 'system', id: null }, request_id: null });
    await db.execute(sql`update connections set run_counter = run_counter + 1 where id = ${id}`);
    expect((await list({ resource_id: id }))[0].id).toBe(entry.id);
  });

  test('of a cursor is recorded for a call, not for a checkpoint', async () => {
    const stream_id = (await make.connection()).streams[0].id as string;
    const advance = (call: string, cursor: string) =>
      db.transaction(async (tx) => {
        await tx.execute(sql`select set_config('audit.call', ${call}, true)`);
        await tx.execute(
          sql`update connection_streams set state = jsonb_build_object('cursor', ${cursor}::text) where id = ${stream_id}`,
        );
      });
    const before = (await list({ resource_id: stream_id })).length;
    await advance('', '1');
    expect(await list({ resource_id: stream_id })).toHaveLength(before);
    await advance('{"action": "connections.update"}', '2');
    expect((await list({ resource_id: stream_id }))[0].after).toEqual({ state: { cursor: '2' } });
  });
});

test('every mutating procedure is audited, and every table is or is known not to be', () => {
  const mutations = [appRouter, restRouter].flatMap((router) =>
    Object.entries<Json>(router._def.procedures).filter(([, { _def }]) => _def.type === 'mutation'),
  );
  expect(mutations.length).toBeGreaterThan(40);
  const unaudited = mutations.filter(([, { _def }]) => !_def.meta?.audited).map(([name]) => name);
  // It changes nothing.
  expect(unaudited).toEqual(['automation.evaluateRule']);
  const audited = AUDITED.map(({ table }) => getTableConfig(table).name);
  const tables = Object.values<unknown>(schema).filter((one) => is(one, PgTable));
  const others = tables.map((one) => getTableConfig(one).name).filter((name) => !audited.includes(name));
  expect(others.toSorted()).toEqual(NOT_AUDITED);
  for (const one of AUDITED) {
    const names = getTableConfig(one.table).columns.map(({ name }) => name);
    const declared = [...(one.secrets ?? []), ...(one.bookkeeping ?? []), ...(one.by_calls ?? [])];
    expect(declared.filter((name) => !names.includes(name))).toEqual([]);
    expect(auditedColumns(one).length).toBeGreaterThan(0);
  }
});

/** Records of work, whose beginning is a call, and what the service keeps for itself. */
const NOT_AUDITED = [
  'account_days',
  'audit_events',
  'audit_seals',
  'audit_unsealed',
  'case_timeline',
  'change_readers',
  'chat_channel_slots',
  'connection_months',
  'connection_period_changes',
  'connection_periods',
  'connection_runs',
  'custom_run_plans',
  'delivered_batches',
  'deliveries',
  'events',
  'idempotency_keys',
  'installation',
  'key_ring',
  'network_log_segments',
  'oauth_consents',
  'period_connections',
  'plan_limit_notices',
  'rejected_rows',
  'root_keys',
  'run_days',
  'secret_uses',
  'sent_rows',
  'sessions',
  'snapshots',
  'stream_days',
  'stream_runs',
  'tasks',
  'trigger_groups',
  'trigger_matches',
  'usage_ledger',
  'verifications',
  'webhook_events',
  'webhook_inboxes',
];

const CHANGES_NOTHING = ['describe_connector_rights', 'evaluate_automator_rule', 'preview_schedule'];

test('each mutating operation that succeeds leaves its call, and no change without it', async () => {
  const contract = readContract();
  const world = await makeWorld(t, { account_id: t.account_id, call: api.call });
  const mutating = contract.operations.filter(({ method, path }) => method !== 'GET' && !path.includes('avatar'));
  const ordered = mutating.toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'));
  const [before] = await db.execute<{ seq: string }>(sql`select max(seq) as seq from audit_events`);
  const succeeded: string[] = [];
  for (const { name, method, path, told } of ordered) {
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, id: string) => world[id]?.at(-1) ?? 'none');
    const media = told.requestBody?.content['application/json'];
    const example = Object.values<Json>(media?.examples ?? {})[0]?.value;
    const request_id = `walk ${name}`.replaceAll(/[^\w.:-]/g, '-');
    const query = name === 'POST /automation/cases/{case_id}' ? '?status=acknowledged' : '';
    const { status } = await api.call(method, filled + query, example, asRequest(request_id));
    if (status >= 300 || CHANGES_NOTHING.includes(told.operationId)) continue;
    succeeded.push(name);
    const entries = await entriesOf(request_id);
    expect([name, entries.filter(({ kind }) => kind === 'call').length]).toEqual([name, 1]);
    expect([name, new Set(entries.map(({ action }) => action)).size]).toEqual([name, 1]);
  }
  expect(succeeded.length).toBeGreaterThan(25);
  const strangers = await db.execute(
    sql`select * from audit_events where seq > ${before!.seq} and kind = 'change' and request_id is null`,
  );
  expect([...strangers]).toEqual([]);
});

describe('a refusal', () => {
  test('is recorded with the caller; repetitions of an address share an entry', async () => {
    const viewer = api.as(await api.keyWith([]));
    const { body: me } = await viewer('GET', '/users/me');
    await viewer('POST', '/roles', { name: 'x', permissions: [] }, asRequest('refused-1'));
    expect(await entriesOf('refused-1')).toMatchObject([
      {
        kind: 'refusal',
        action: 'roles.create',
        outcome: 'refused',
        code: 'permission_denied',
        actor: { type: 'user', id: me.id },
        details: { required_permission: 'roles.manage' },
      },
    ]);
    const guess = (request_id: string) =>
      api.as(`wrong-key-${request_id}`)('POST', '/connections', {}, asRequest(request_id));
    for (let n = 0; n < 5; n += 1) expect((await guess(`guess-${n}`)).status).toBe(401);
    const mine = async () =>
      (await list({ kind: 'refusal' })).filter(
        ({ code, action }) => code === 'invalid_token' && action === 'connections.create',
      );
    expect(await mine()).toMatchObject([{ actor: { type: 'anonymous' }, account_id: null, count: 1 }]);
    await flushRefusals(deps);
    expect((await mine()).map(({ count }) => count)).toEqual([4, 1]);
  });

  test('over tRPC and with an Idempotency-Key is recorded once', async () => {
    await flushRefusals(deps);
    const none = api.as('no-such-key');
    const headers = { ...asRequest('refused-2'), 'idempotency-key': 'k' };
    expect((await none('POST', '/trpc/roles.create', { name: 'x', permissions: [] }, headers)).status).toBe(401);
    expect(await entriesOf('refused-2')).toMatchObject([{ kind: 'refusal', code: 'invalid_token', count: 1 }]);
  });

  test('of many callers fills no table', async () => {
    await flushRefusals(deps);
    const app = createApp({ ...deps, config: { ...deps.config, TRUSTED_PROXIES: ['0.0.0.0/0', '::/0'] } });
    const [{ before } = { before: 0 }] = await db.execute<{ before: number }>(
      sql`select count(*)::int as before from audit_events`,
    );
    const server = app.listen({ hostname: '127.0.0.1', port: 0 }).server!;
    for (let n = 0; n < 130; n += 1) {
      const headers = { 'x-forwarded-for': `203.0.${n}.7`, authorization: 'Bearer nothing' };
      expect((await fetch(`http://127.0.0.1:${server.port}/connections`, { headers })).status).toBe(401);
    }
    await server.stop(true);
    const [{ after } = { after: 0 }] = await db.execute<{ after: number }>(
      sql`select count(*)::int as after from audit_events`,
    );
    expect(after - before).toBe(101);
  });

  test('of an expired key names its owner', async () => {
    const key = await api.keyWith([]);
    const { body: me } = await api.as(key)('GET', '/users/me');
    await db.execute(sql`update api_keys set expires_at = now() where user_id = ${me.id}`);
    expect((await api.as(key)('GET', '/users/me', undefined, asRequest('expired-1'))).status).toBe(401);
    expect(await entriesOf('expired-1')).toMatchObject([{ code: 'token_expired', actor: { id: me.id } }]);
  });
});

describe('a sign-in', () => {
  const CONSOLE = { 'x-requested-by': 'console', 'sec-fetch-site': 'same-origin', origin: 'http://localhost' };
  const send = (method: string, request_id: string, more: { cookie?: string; api_key?: string }) =>
    createApp(deps).handle(
      new Request('http://localhost/console/session', {
        method,
        headers: {
          ...CONSOLE,
          ...asRequest(request_id),
          'content-type': 'application/json',
          ...(more.cookie && { cookie: more.cookie }),
        },
        body: more.api_key === undefined ? undefined : JSON.stringify({ api_key: more.api_key }),
      }),
    );
  test('and a sign-out are recorded with their session, a refused one with its reason', async () => {
    const opened = await send('POST', 'in-1', { api_key: t.api_key });
    const [signedIn] = await entriesOf('in-1');
    expect(signedIn).toMatchObject({ kind: 'sign_in', actor: { id: t.user_id }, session_id: expect.any(String) });
    await send('DELETE', 'out-1', { cookie: opened.headers.get('set-cookie')!.split(';')[0]! });
    expect(await entriesOf('out-1')).toMatchObject([{ kind: 'sign_out', session_id: signedIn.session_id }]);
    expect((await send('POST', 'in-2', { api_key: 'wrong' })).status).toBe(401);
    expect(await entriesOf('in-2')).toMatchObject([
      { kind: 'refusal', action: 'POST /console/session', code: 'invalid_token', actor: { type: 'anonymous' } },
    ]);
  });
});

describe('reading', () => {
  test('GET /audit_log 200, 400: filters, pages, and follows by `after`', async () => {
    const role = (await api.call('POST', '/roles', { name: 'Auditor', permissions: ['audit.read'] })).body;
    await api.call('POST', `/roles/${role.id}`, { description: 'Reads the log' });
    const about = await list({ resource_id: role.id });
    expect(about.map(({ kind, action }) => [kind, action])).toEqual([
      ['change', 'roles.update'],
      ['call', 'roles.update'],
      ['change', 'roles.create'],
    ]);
    expect(await list({ resource_id: role.id, action: 'roles.*', kind: 'call' })).toEqual([about[1]]);
    expect(await list({ resource_id: role.id, to: '2020-01-01' })).toEqual([]);
    expect(await list({ resource_id: role.id, actor: crypto.randomUUID() })).toEqual([]);
    expect(await list({ resource_id: role.id, limit: '1', offset: '1' })).toEqual([about[1]]);
    expect(await list({ resource_id: role.id, after: about[2].id })).toEqual([about[1], about[0]]);
    expect((await api.call('GET', '/audit_log?after=999999999')).body.code).toBe('unknown_entry');
    expect((await rpcQuery(api.call, 'audit.list', { resource_id: role.id })).result).toEqual(about);
  });

  test('GET /audit_log/export 200: downloads JSON Lines, which is recorded', async () => {
    const response = await api.raw('/audit_log/export?action=roles.create');
    expect(response.headers.get('content-disposition')).toContain('audit-log.jsonl');
    const lines = (await response.text()).trim().split('\n');
    const all = await list({ action: 'roles.create', limit: '1000' });
    expect(lines.map((line) => JSON.parse(line))).toEqual(all.toReversed());
    expect((await list({ kind: 'download' }))[0]).toMatchObject({ action: 'audit.export', actor: { id: t.user_id } });
  });

  test('shows an account its own entries, and none without account once there are several', async () => {
    const other = await api.otherAccount();
    const { body } = await other.call('GET', '/audit_log?limit=1000');
    expect(new Set(body.map(({ account_id }: Json) => account_id))).toEqual(new Set([other.account_id]));
    const anonymous = (await list({ limit: '1000', kind: 'refusal' })).filter(({ account_id }) => account_id === null);
    expect(anonymous).toEqual([]);
  });

  test('lists the use of a secret', async () => {
    const [connector] = await db.select().from(schema.accountConnectors).limit(1);
    const use = { account_id: t.account_id, account_connector_id: connector!.id, actor_id: t.user_id };
    await db.insert(schema.secretUses).values({
      ...use,
      purpose: 'run',
      host: 'db.example.test:5432',
      actor_type: 'user',
      occurred_at: new Date().toISOString(),
    });
    expect(await list({ kind: 'secret_use', resource_id: connector!.id, limit: '1' })).toMatchObject([
      { action: 'run', actor: { id: t.user_id }, details: { host: 'db.example.test:5432' } },
    ]);
  });
});

describe('the chain', () => {
  const verify = async (body: object = {}) => (await api.call('POST', '/audit_log/verify', body)).body;

  test.each([
    'update audit_events set count = 2',
    'delete from audit_events',
    'truncate audit_events',
    'delete from audit_seals',
  ])('refuses: %s', async (statement) => {
    const refused = db.execute(sql.raw(statement)).then(
      () => null,
      (error: Json) => error.cause?.message ?? error.message,
    );
    expect(await refused).toContain('is append-only');
  });

  test('POST /audit_log/verify 200: covers every entry once, whatever was rolled back or committed late', async () => {
    await Promise.all(
      Array.from({ length: 6 }, async (_, writer) => {
        for (let n = 0; n < 5; n += 1) {
          await db
            .transaction(async (tx) => {
              await tx.execute(sql`update accounts set name = ${`${writer} ${n}`} where id = ${t.account_id}`);
              if (n % 2 === 0) throw new Error('rolled back');
            })
            .catch(() => {});
          await sealAudit(deps);
        }
      }),
    );
    await sealAudit(deps);
    const intact = await verifyAudit(deps, null);
    expect(intact).toMatchObject({ is_intact: true, problems: [], unsealed: 0 });
    const [{ entries } = { entries: 0 }] = await db.execute<{ entries: number }>(
      sql`select count(*)::int as entries from audit_events`,
    );
    expect(intact.entries).toBe(entries);
    expect(await verifyAudit(deps, intact.head)).toMatchObject({ is_intact: true });
    const mine = await verify();
    expect(mine).toMatchObject({ is_intact: true, problems: [], unsealed: 0 });
    // The call itself is an entry.
    expect(await verify({ anchor: mine.head })).toMatchObject({ is_intact: true, head: mine.head, unsealed: 1 });
  });

  test('reads each entry a few times, however many wait', async () => {
    const many = await openTestDeps();
    await sealAudit(many.deps);
    const read = await many.deps.db.transaction(async (tx) => {
      // As the service usually finds it: statistics of a table that was empty, and so many pages that an index is read.
      await tx.execute(sql`analyze audit_unsealed`);
      await tx.execute(sql`set local enable_seqscan = off`);
      await tx.execute(sql`
        insert into audit_events (kind, account_id, action, actor_type)
        select 'call', ${many.account_id}, 'many', 'system' from generate_series(1, 500)`);
      expect(await sealAudit({ ...many.deps, db: tx })).toBe(500);
      const [row] = await tx.execute<{ rows: number }>(sql`
        select (seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_xact_user_tables where relname = 'audit_unsealed'`);
      return row!.rows;
    });
    expect(read).toBeLessThan(5000);
    await many.close();
  });

  test('of an account covers its entries alone; that of the installation also those without an account', async () => {
    const other = await api.otherAccount();
    for (const name of ['A', 'B']) {
      await other.call('POST', '/roles', { name, permissions: ['audit.read'] });
      await api.anonymous('POST', '/roles', {});
      await sealAudit(deps);
    }
    const entriesWhere = async (where: string) => {
      const [row] = await db.execute<{ n: number }>(
        sql.raw(`select count(*)::int as n from audit_events where ${where}`),
      );
      return row!.n;
    };
    const ofOther = `account_id = '${other.account_id}'`;
    const entries = await entriesWhere(ofOther);
    const answer = (await other.call('POST', '/audit_log/verify', {})).body;
    expect(answer).toMatchObject({ is_intact: true, entries, unsealed: 0, seals: 2 });
    // The last seal of all is another one.
    await api.anonymous('POST', '/roles', {});
    await sealAudit(deps);
    const theirs = () => verifyAccountAudit(deps, other.account_id, answer.head);
    const mine = () => verifyAccountAudit(deps, t.account_id, null);
    const whole = await verifyAudit(deps, null);
    const broken = async (statement: string, undo: string) => {
      await tamper(statement);
      const all = [await verifyAudit(deps, whole.head), await verifyAudit(deps, null)];
      const found = [await theirs(), await mine(), ...all];
      await tamper(undo);
      return found.map(({ problems }) => problems.map(({ problem }) => problem));
    };
    const changed: AuditProblem['problem'][] = ['entries_changed'];
    const alone: AuditProblem['problem'][] = [];
    const edit = (where: string) =>
      broken(
        `update audit_events set count = count + 7 where seq = (select max(seq) from audit_events where ${where} and not exists (select from audit_unsealed u where u.seq = audit_events.seq))`,
        `update audit_events set count = count - 7 where count > 7`,
      );
    expect(await edit(ofOther)).toEqual([changed, alone, changed, changed]);
    expect(await edit(`account_id = '${t.account_id}'`)).toEqual([alone, changed, changed, changed]);
    expect(await edit('account_id is null')).toEqual([alone, alone, changed, changed]);
    const seal = `${answer.head.seal}`;
    const gone = await broken(
      `create table kept as select * from audit_seals where id = ${seal};
       create table kept_entries as select e.* from audit_events e, kept where e.seq <@ kept.seqs;
       delete from audit_events e using kept where e.seq <@ kept.seqs; delete from audit_seals where id = ${seal}`,
      `insert into audit_seals select * from kept;
       insert into audit_events overriding system value select * from kept_entries; drop table kept, kept_entries`,
    );
    // Without the anchor, only the numbers of all seals show that the last one of an account is gone.
    const missing = expect.arrayContaining(['seal_missing']);
    expect(gone).toEqual([missing, alone, missing, missing]);
    const moved = `update audit_seals set chain = '${t.account_id}' where id = ${seal}`;
    const back = `update audit_seals set chain = '${other.account_id}' where id = ${seal}`;
    expect((await broken(moved, back))[1]).toEqual(['seal_missing']);
    const before = `(select max(id) from audit_seals where chain = '${t.account_id}' and id < ${seal})`;
    const own = `update audit_seals set previous = (select max(id) from audit_seals where chain = '${other.account_id}' and id < ${seal})`;
    const fitting = await broken(
      `update audit_seals set chain = '${t.account_id}', previous = ${before} where id = ${seal}`,
      `update audit_seals set chain = '${other.account_id}' where id = ${seal}; ${own} where id = ${seal}`,
    );
    expect(fitting[1]![0]).toBe('seal_forged');
  });

  test('of an earlier version, over all accounts, stays valid beside the chains of the accounts', async () => {
    const former = await openTestDeps();
    const { deps: old, account_id } = former;
    const asOwner = (...statements: SQL[]) =>
      old.db.transaction(async (tx) => {
        await tx.execute(sql`set local session_replication_role = replica`);
        for (const statement of statements) await tx.execute(statement);
      });
    await asOwner(
      sql`delete from audit_unsealed using audit_events e where e.seq = audit_unsealed.seq and e.account_id is null`,
      sql`delete from audit_events where account_id is null`,
    );
    await sealAudit(old);
    const [first] = await old.db.select().from(schema.auditSeals);
    // The first seal of an account has the hash that one over all accounts had. Only the HMAC differs.
    const mac = old.secrets.hmac('audit_seal', `1 ${first!.hash}`);
    await asOwner(
      sql`update audit_seals set chain = 'installation', mac = ${mac}`,
      sql`insert into audit_unsealed (seq) select seq from audit_events`,
    );
    await sealAudit(old);
    const anchor = { seal: 1, hash: first!.hash };
    const entries = (await old.db.select().from(schema.auditEvents)).length;
    expect(await verifyAudit(old, anchor)).toMatchObject({ is_intact: true, entries, seals: 2 });
    expect(await verifyAccountAudit(old, account_id, anchor)).toMatchObject({ is_intact: true, entries, seals: 1 });
    await former.close();
  });

  test('logs each sealed entry and the seal as JSON lines with AUDIT_LOG_LINES, whatever the level of the log', async () => {
    const lines: Json[] = [];
    const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const create = (name: string) =>
      api.call('POST', '/roles', { name, permissions: ['audit.read'] }, asRequest(`logged-${name}`));
    await create('quiet');
    await sealAudit({ ...deps, log });
    expect(lines).toEqual([]);
    await create('lines');
    await sealAudit({ ...deps, log, config: { ...deps.config, AUDIT_LOG_LINES: true } });
    const { head } = await verifyAccountAudit(deps, t.account_id, null);
    expect(lines.flatMap(({ audit }) => audit ?? [])).toEqual(await entriesOf('logged-lines'));
    expect(lines.at(-1).audit_seal).toMatchObject({ id: head!.seal, hash: head!.hash, entries: 2 });
  });

  test('finds a changed, a removed and an added entry, a forged seal and a cut end', async () => {
    const created = await api.call('POST', '/roles', { name: 'Last', permissions: ['audit.read'] });
    expect(created.status).toBe(201);
    await sealAudit(deps);
    const check = (anchor: { seal: number; hash: string } | null) => verifyAccountAudit(deps, t.account_id, anchor);
    const { head } = await check(null);
    const sole = { seal: head!.seal };
    const problemAfter = async (statement: string, undo: string) => {
      await tamper(statement);
      const { problems } = await check(head);
      await tamper(undo);
      return problems;
    };
    const last = 'seq = (select max(seq) from audit_events)';
    expect(
      await problemAfter(
        `update audit_events set actor_name = coalesce(actor_name, '') || '!' where ${last}`,
        `update audit_events set actor_name = nullif(left(actor_name, -1), '') where ${last}`,
      ),
    ).toMatchObject([{ ...sole, problem: 'entries_changed' }]);
    expect(
      await problemAfter(
        `create table kept as select * from audit_events where ${last}; delete from audit_events where ${last}`,
        `insert into audit_events overriding system value select * from kept; drop table kept`,
      ),
    ).toMatchObject([{ ...sole, problem: 'entries_changed' }]);
    expect(
      await problemAfter(
        `insert into audit_events (account_id, kind, action, actor_type) values ('${t.account_id}', 'call', 'never', 'system')`,
        `delete from audit_events where action = 'never'`,
      ),
    ).toMatchObject([{ seal: null, problem: 'entries_added' }]);
    expect(
      await problemAfter(
        `update audit_seals set mac = reverse(mac) where id = ${head!.seal}`,
        `update audit_seals set mac = reverse(mac) where id = ${head!.seal}`,
      ),
    ).toMatchObject([{ ...sole, problem: 'seal_forged' }]);
    await tamper(`delete from audit_seals where id = ${head!.seal}`);
    expect((await check(head)).problems.map(({ problem }) => problem)).toEqual(['seal_missing', 'entries_added']);
  });
});

test('audit.verify is for users with audit.read', async () => {
  const viewer = api.as(await api.keyWith(['users.manage']));
  expect((await rpc(viewer, 'audit.verify', {})).status).toBe(403);
});
