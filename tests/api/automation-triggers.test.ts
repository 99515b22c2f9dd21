import { describe, expect, test } from 'bun:test';
import { desc, eq } from 'drizzle-orm';
import { accounts, cases, deliveries, events, triggerGroups, triggers, users } from '../../db/schema/index.ts';
import { emit, SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { evaluatePending } from '../../server/automation/evaluation/evaluation-loop.ts';
import { openActions } from '../../server/automation/triggers/action-secrets.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { uniqueName } from '../support/resources.ts';

const server = await testDeps();
const { db, secrets } = server.deps;
const api = testApi(server);
const { call } = api;
const PATH = '/automation/triggers';

const PAUSE = { type: 'pause_connection' };
const HOOK = { type: 'call_webhook', url: 'https://example.com/hook', secret: 'a secret of enough characters' };
const body = (more: object = {}) => ({
  name: uniqueName('trigger'),
  rule: 'event == "connection_failed"',
  actions: [PAUSE],
  ...more,
});
const make = async (more: object = {}) => {
  const answer = await call('POST', PATH, body(more));
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};
const kindsOf = async (trigger_id: string) =>
  (await db.select().from(events).where(eq(events.category, 'automation')).orderBy(events.id))
    .filter((event) => event.payload.trigger_id === trigger_id)
    .map((event) => event.event);
const systemTrigger = async () => {
  const { body: all } = await call('GET', `${PATH}?include_system=true`);
  return all.find(
    (trigger: { name: string; is_system: boolean }) => trigger.is_system && trigger.name === 'Connection failed',
  );
};

describe('POST /automation/triggers', () => {
  test('201: fills in the defaults and emits an event', async () => {
    const name = uniqueName('trigger');
    const answer = await call('POST', PATH, body({ name, rule: 'event == "user_added" && str::trim(email) == "a"' }));
    expect(answer.status).toBe(201);
    const { id, created_at, updated_at, ...shown } = answer.body;
    expect(shown).toEqual({
      account_id: server.account_id,
      name,
      description: null,
      rule: 'event == "user_added" && str::trim(email) == "a"',
      condition: null,
      normalized_rule: 'event == "user_added" && trim(email) == "a"',
      actions: [PAUSE],
      enabled: true,
      event_types: null,
      matched_kinds: ['user_added'],
      severity: 'warning',
      threshold: 1,
      within_seconds: 0,
      posture: 'reactive',
      expect: null,
      group_by: [],
      cooldown_seconds: 0,
      case: {
        open: true,
        resolve_rule: null,
        auto_resolve: true,
        reopen_window_seconds: 86_400,
        notify_on_resolve: false,
        notify_every: null,
      },
      is_system: false,
      owner: null,
      state: 'idle',
      last_evaluated_at: null,
      last_fired_at: null,
      fire_count: 0,
      error_count: 0,
      last_error: null,
      open_cases_count: 0,
      created_by: { id: server.user_id, name: expect.any(String), email: expect.any(String) },
    });
    expect(created_at).toBe(updated_at);
    expect(await kindsOf(id)).toEqual(['trigger_created']);
    expect((await call('GET', `${PATH}/${id}`)).body).toEqual(answer.body);
  });

  test('201: accepts a condition in place of a rule, and event kinds by wildcard', async () => {
    const condition = { variable: 'retry_count', operator: 'gte', value: 3 };
    const created = await make({ rule: undefined, condition, event_types: ['connection_f*'] });
    expect([created.rule, created.condition, created.normalized_rule]).toEqual([null, condition, 'retry_count >= 3']);
    expect(created.matched_kinds).toEqual(['connection_failed']);
  });

  test.each([
    ['event == "connection_failed"', ['connection_id']],
    ['event == "account_connector_broken"', ['account_connector_id']],
    ['event == "plan_limit_warning"', []],
    ['severity == "critical"', ['connection_id']],
  ])('201: %s is grouped by %j', async (rule, group_by) => {
    expect((await make({ rule })).group_by).toEqual(group_by);
  });

  test.each([
    [
      'a rule',
      'event == "connection_succeeded" && rows_loaded > 0',
      'event == "connection_succeeded" && rows_loaded > 0',
    ],
    ['a kind', 'connection_succeeded', 'event in ["connection_succeeded"]'],
    ['kinds', ['connection_succeeded', 'connection_failed'], 'event in ["connection_succeeded", "connection_failed"]'],
    [
      'a condition',
      { variable: 'event', operator: 'eq', value: 'connection_succeeded' },
      'event == "connection_succeeded"',
    ],
  ])('201: a proactive trigger expects %s', async (_, expected, stored) => {
    const created = await make({ posture: 'proactive', within_seconds: 60, expect: expected });
    expect([created.posture, created.expect]).toEqual(['proactive', stored]);
  });

  test('201: the secret of a webhook is sealed and never shown', async () => {
    const created = await make({ actions: [PAUSE, HOOK] });
    expect(created.actions[1].secret).toBe('**********');
    const [row] = await db.select().from(triggers).where(eq(triggers.id, created.id));
    expect(JSON.stringify(row)).not.toContain(HOOK.secret);
    expect(openActions(secrets, row!)[1]).toMatchObject(HOOK);
  });

  test.each([
    ['event ==', 'parse_error', { line: 1, column: 9, offset: 8 }],
    ['event == "connection_failed" && foo', 'unknown_variable', { line: 1, column: 33, offset: 32 }],
    ['event == "user_exploded"', 'type_error', { line: 1, column: 10, offset: 9 }],
    ['tags.exists(t, t == "a")', 'function_not_allowed', { line: 1, column: 6, offset: 5 }],
    ['retry_count', 'result_not_boolean', { line: 1, column: 1, offset: 0 }],
  ])('400 invalid_rule with its position, and nothing is stored: %s', async (rule, rule_error, position) => {
    const name = uniqueName('never');
    const answer = await call('POST', PATH, body({ name, rule }));
    expect([answer.status, answer.body.code, answer.body.field]).toEqual([400, 'invalid_rule', 'rule']);
    expect([answer.body.rule_error, answer.body.position]).toEqual([rule_error, position]);
    expect(await db.select().from(triggers).where(eq(triggers.name, name))).toEqual([]);
  });

  test.each([
    [{ rule: 'event == "user_added" && event == "user_removed"' }, 'invalid_rule', 'rule'],
    [{ event_types: ['user_added'] }, 'invalid_rule', 'event_types'],
    [{ case: { resolve_rule: 'nonsense' } }, 'invalid_rule', 'case.resolve_rule'],
    [{ posture: 'proactive', within_seconds: 60, expect: 'nonsense' }, 'invalid_rule', 'expect'],
    [{ posture: 'proactive', within_seconds: 60 }, 'missing_expect', 'expect'],
    [{ posture: 'proactive', within_seconds: 59, expect: 'user_added' }, 'within_too_short', 'within_seconds'],
    [{ group_by: ['nonsense'] }, 'invalid_group_by', 'group_by'],
    [{ rule: 'event == "connection_succeeded"', actions: [{ type: 'run_connection' }] }, 'action_loop', 'actions.0'],
    [
      { actions: [PAUSE, { type: 'run_connection', connection_id: Bun.randomUUIDv7() }] },
      'invalid_reference',
      'actions.1.connection_id',
    ],
  ])('400: %j', async (more, code, field) => {
    const answer = await call('POST', PATH, body(more));
    expect([answer.status, answer.body.code, answer.body.field]).toEqual([400, code, field]);
  });

  test('400 duplicate_name, although names of system triggers are free', async () => {
    const { name } = await make();
    const answer = await call('POST', PATH, body({ name: name.toUpperCase() }));
    expect([answer.status, answer.body.code]).toEqual([400, 'duplicate_name']);
    expect((await make({ name: 'Connection failed' })).is_system).toBe(false);
  });

  test('402 at the limit of the plan, which ignores system triggers', async () => {
    const other = await api.otherAccount();
    await db.update(accounts).set({ plan_id: 'free' }).where(eq(accounts.id, other.account_id));
    for (let at = 0; at < 3; at += 1) expect((await other.call('POST', PATH, body())).status).toBe(201);
    const answer = await other.call('POST', PATH, body());
    expect([answer.status, answer.body.code, answer.body.limit, answer.body.current_value]).toEqual([
      402,
      'plan_limit_reached',
      'max_triggers',
      3,
    ]);
  });

  test.each([
    [{ rule: undefined }, ['body', 'rule']],
    [{ condition: { variable: 'event', operator: 'eq', value: 'x' } }, ['body', 'rule']],
    [{ rule: 'x'.repeat(2001) }, ['body', 'rule']],
    [{ actions: [] }, ['body', 'actions']],
    [{ actions: [{ type: 'explode' }] }, ['body', 'actions', 0, 'type']],
    [{ threshold: 0 }, ['body', 'threshold']],
    [{ threshold: 1001 }, ['body', 'threshold']],
    [{ within_seconds: 604_801 }, ['body', 'within_seconds']],
    [{ severity: 'bad' }, ['body', 'severity']],
    [{ event_types: ['nothing_*'] }, ['body', 'event_types', 0]],
    [{ name: ' ' }, ['body', 'name']],
    [{ extra: 1 }, ['body', 'extra']],
  ])('422: %j', async (more, loc) => {
    const answer = await call('POST', PATH, body(more));
    expect(answer.status).toBe(422);
    expect(answer.body.detail[0].loc).toEqual(loc);
  });

  test('401 without a key, 403 without the permission', async () => {
    expect((await api.anonymous('POST', PATH, body())).status).toBe(401);
    const answer = await api.as(await api.keyWith(['triggers.update']))('POST', PATH, body());
    expect([answer.status, answer.body.required_permission]).toEqual([403, 'triggers.create']);
  });
});

describe('GET /automation/triggers', () => {
  test('200: newest first, system triggers only on request', async () => {
    const created = await make();
    const { body: own } = await call('GET', PATH);
    expect(own[0].id).toBe(created.id);
    expect(own.some((trigger: { is_system: boolean }) => trigger.is_system)).toBe(false);
    const all = await call('GET', `${PATH}?include_system=true`);
    const system = all.body.filter((trigger: { is_system: boolean }) => trigger.is_system);
    expect(system.map((trigger: { name: string }) => trigger.name).sort()).toEqual([
      'API key expiring',
      'Breaking schema change',
      'Configuration drift',
      'Connection auto-disabled',
      'Connection failed',
      'Daily digest',
      'Plan limit ≥ 80/100 %',
    ]);
    expect(all.headers.get('x-total-count')).toBe(String(own.length + 7));
    expect((await call('GET', `${PATH}?limit=1`)).body).toEqual([own[0]]);
  });

  test('200: without any permission; 401 without a key; 422 for an invalid boolean', async () => {
    expect((await api.as(await api.keyWith([]))('GET', PATH)).status).toBe(200);
    expect((await api.anonymous('GET', PATH)).status).toBe(401);
    expect((await call('GET', `${PATH}?include_system=maybe`)).status).toBe(422);
  });
});

describe('GET /automation/triggers/{trigger_id}', () => {
  test('200: returns the trigger as its creation did', async () => {
    const created = await make();
    const answer = await call('GET', `${PATH}/${created.id}`);
    expect([answer.status, answer.body]).toEqual([200, created]);
  });

  test("404: unknown, malformed, deleted or another account's; 401 without a key", async () => {
    const { id } = await make();
    const other = await api.otherAccount();
    const answer = await other.call('GET', `${PATH}/${id}`);
    expect([answer.status, answer.body.detail]).toEqual([404, 'Trigger not found']);
    for (const unknown of ['nothing', Bun.randomUUIDv7()])
      expect((await call('GET', `${PATH}/${unknown}`)).status).toBe(404);
    expect((await api.anonymous('GET', `${PATH}/${id}`)).status).toBe(401);
  });
});

describe('POST /automation/triggers/{trigger_id}', () => {
  test('200: changes only the given fields', async () => {
    const created = await make({ threshold: 3, within_seconds: 600, case: { reopen_window_seconds: 60 } });
    const answer = await call('POST', `${PATH}/${created.id}`, { enabled: false, case: { auto_resolve: false } });
    expect(answer.status).toBe(200);
    const { updated_at, ...shown } = answer.body;
    const { updated_at: _, ...before } = created;
    expect(shown).toEqual({ ...before, enabled: false, case: { ...created.case, auto_resolve: false } });
    expect(updated_at >= created.updated_at).toBe(true);
    expect(await kindsOf(created.id)).toEqual(['trigger_created', 'trigger_updated']);
  });

  test('200: a new rule resets the counters, also of a trigger disabled for its errors', async () => {
    const created = await make();
    await db
      .update(triggers)
      .set({ state: 'auto_disabled', consecutive_errors: 20, last_error: 'x' })
      .where(eq(triggers.id, created.id));
    const condition = { variable: 'event', operator: 'eq', value: 'user_added' };
    const { body: shown } = await call('POST', `${PATH}/${created.id}`, { condition });
    expect([shown.state, shown.last_error, shown.rule, shown.matched_kinds]).toEqual([
      'idle',
      null,
      null,
      ['user_added'],
    ]);
  });

  test('200: an update that changes nothing changes no timestamp, no count and emits nothing', async () => {
    const created = await make({ actions: [PAUSE, HOOK], threshold: 3, within_seconds: 600 });
    await db.update(triggers).set({ state: 'pending' }).where(eq(triggers.id, created.id));
    const group = { trigger_id: created.id, group_key: 'k', group: {}, matched_at: ['2026-01-01T00:00:00.000Z'] };
    await db.insert(triggerGroups).values(group);
    const before = await call('GET', `${PATH}/${created.id}`);
    const { name, rule, actions, enabled, severity, threshold, within_seconds, group_by, case: settings } = before.body;
    const same = { name, rule, actions, enabled, severity, threshold, within_seconds, group_by, case: settings };
    expect(await call('POST', `${PATH}/${created.id}`, same)).toMatchObject({ status: 200, body: before.body });
    expect(await kindsOf(created.id)).toEqual(['trigger_created']);
    const groups = await db.select().from(triggerGroups).where(eq(triggerGroups.trigger_id, created.id));
    expect(groups).toMatchObject([{ matched_at: group.matched_at }]);
    expect(await call('POST', `${PATH}/${created.id}`, { ...same, threshold: 4 })).toMatchObject({ status: 200 });
    const [event] = await db
      .select()
      .from(events)
      .where(eq(events.event, 'trigger_updated'))
      .orderBy(desc(events.id))
      .limit(1);
    expect(event!.payload.changed_fields).toEqual(['threshold']);
  });

  test('200: the mask of a secret keeps it, also when actions change their order', async () => {
    const created = await make({ actions: [PAUSE, HOOK] });
    const masked = created.actions[1];
    await call('POST', `${PATH}/${created.id}`, { actions: [masked, PAUSE] });
    const [row] = await db.select().from(triggers).where(eq(triggers.id, created.id));
    expect(openActions(secrets, row!)[0]).toMatchObject(HOOK);
  });

  test('POST /automation/notifications 200: every system trigger notifies one place, a second request adds nothing; 400 invalid_reference', async () => {
    const shownOnce = async () => {
      const { status, body: all } = await call('POST', '/automation/notifications', { action: HOOK });
      expect(status).toBe(200);
      return all.map(({ actions }: { actions: object[] }) => actions);
    };
    const first = await shownOnce();
    const masked = { ...HOOK, secret: '**********', headers: {}, payload_template: null };
    // All but the daily digest, which is sent on request only.
    expect(first.filter((actions: object[]) => actions.length === 0)).toHaveLength(1);
    const notifying = first.filter((actions: object[]) => actions.length > 0);
    expect(notifying).toHaveLength(6);
    for (const actions of notifying) expect(actions.at(-1)).toEqual(masked);
    expect(await shownOnce()).toEqual(first);
    const paused = await call('POST', '/automation/notifications', { action: PAUSE });
    expect(paused.status).toBe(422);
    const mail = { type: 'send_email', recipients: ['unknown@example.com'], subject_template: 's', body_template: 'b' };
    const refused = await call('POST', '/automation/notifications', { action: mail });
    expect([refused.status, refused.body.code]).toEqual([400, 'invalid_reference']);
    const system = await db.select().from(triggers).where(eq(triggers.is_system, true));
    const told = system.find(({ actions }) => actions.length > 0)!;
    expect(openActions(secrets, told).at(-1)).toMatchObject({ secret: HOOK.secret });
    await db.update(triggers).set({ actions: [], secrets: null }).where(eq(triggers.is_system, true));
  });

  test('GET /automation/notification_settings 200; POST /automation/notification_settings 200 keeps what is omitted; 400 invalid_quiet_hours; 422', async () => {
    const settings = '/automation/notification_settings';
    const none = { timezone: null, quiet_from: null, quiet_until: null, urgent_severity: 'critical', digest_at: null };
    expect((await call('GET', settings)).body).toMatchObject(none);
    const quiet = { quiet_from: '22:00', quiet_until: '07:00', timezone: 'Europe/Berlin' };
    expect((await call('POST', settings, quiet)).body).toMatchObject({ ...none, ...quiet });
    const { body: timed } = await call('POST', settings, { digest_at: '08:00', urgent_severity: null });
    expect(timed).toMatchObject({ ...quiet, digest_at: '08:00', urgent_severity: null });
    expect(new Date(timed.next_digest_at).toLocaleTimeString('sv', { timeZone: 'Europe/Berlin' })).toBe('08:00:00');
    for (const wrong of [{ quiet_from: null }, { quiet_from: '07:00' }]) {
      const { status, body: refused } = await call('POST', settings, wrong);
      expect([status, refused.code]).toEqual([400, 'invalid_quiet_hours']);
    }
    for (const wrong of [{ digest_at: '24:00' }, { timezone: 'Mars/Olympus' }, {}])
      expect((await call('POST', settings, wrong)).status).toBe(422);
    const { quiet_now_until: _now, ...kept } = timed;
    expect((await call('GET', settings)).body).toMatchObject(kept);
    const off = { ...none, quiet_from: null, quiet_until: null, digest_at: null };
    expect((await call('POST', settings, off)).body).toMatchObject({ ...off, next_digest_at: null });
  });

  test('POST /automation/notification_tests 200: says why a message was not sent; 400 no_notifications; 404', async () => {
    const [user] = await db.select().from(users);
    const mail = { type: 'send_email', recipients: [user!.email], subject_template: 's', body_template: 'b' };
    const { status, body: tested } = await call('POST', '/automation/notification_tests', { action: mail });
    expect([status, tested]).toMatchObject([200, [{ is_sent: false, error: { code: 'mail_not_configured' } }]]);
    const { id } = await make();
    const refused = await call('POST', '/automation/notification_tests', { trigger_id: id });
    expect([refused.status, refused.body.code]).toEqual([400, 'no_notifications']);
    const unknown = await call('POST', '/automation/notification_tests', { trigger_id: Bun.randomUUIDv7() });
    expect(unknown.status).toBe(404);
  });

  test('POST /automation/drift_reports 204: emits whether the account differs from a file', async () => {
    const report = (changes: string[]) => call('POST', '/automation/drift_reports', { file: 'shop.yaml', changes });
    expect((await report(['update connection "Shop"'])).status).toBe(204);
    expect((await report([])).status).toBe(204);
    const [matched, drifted] = await db.select().from(events).orderBy(desc(events.id)).limit(2);
    expect([matched!.event, drifted!.event]).toEqual(['configuration_matched', 'configuration_drifted']);
    expect(drifted!.summary).toBe('The account differs from shop.yaml: 1 change');
    expect(drifted!.payload).toMatchObject({ changes: 1, changed_items: ['update connection "Shop"'], owner: null });
  });

  test('200: a system trigger accepts actions and enabled; 400 system_trigger_field for other fields', async () => {
    const { id } = await systemTrigger();
    const changed = await call('POST', `${PATH}/${id}`, { enabled: false, actions: [PAUSE] });
    expect([changed.status, changed.body.enabled, changed.body.actions]).toEqual([200, false, [PAUSE]]);
    const refused = await call('POST', `${PATH}/${id}`, { rule: 'true' });
    expect([refused.status, refused.body.code, refused.body.field]).toEqual([400, 'system_trigger_field', 'rule']);
    await call('POST', `${PATH}/${id}`, { enabled: true });
  });

  test.each([
    [{ rule: 'nonsense' }, 'invalid_rule'],
    [{ event_types: ['user_added'] }, 'invalid_rule'],
    [{ posture: 'proactive' }, 'missing_expect'],
    [{ group_by: ['nonsense'] }, 'invalid_group_by'],
    [{ case: { resolve_rule: 'nonsense' } }, 'invalid_rule'],
  ])('400: %j', async (change, code) => {
    const created = await make();
    const answer = await call('POST', `${PATH}/${created.id}`, change);
    expect([answer.status, answer.body.code]).toEqual([400, code]);
    expect((await call('GET', `${PATH}/${created.id}`)).body).toEqual(created);
  });

  test('400 duplicate_name', async () => {
    const [one, other] = [await make(), await make()];
    const answer = await call('POST', `${PATH}/${one.id}`, { name: other.name });
    expect([answer.status, answer.body.code]).toEqual([400, 'duplicate_name']);
  });

  test('401, 403, 404, 422', async () => {
    const { id } = await make();
    expect((await api.anonymous('POST', `${PATH}/${id}`, { enabled: false })).status).toBe(401);
    expect(
      (await api.as(await api.keyWith(['triggers.create']))('POST', `${PATH}/${id}`, { enabled: false })).status,
    ).toBe(403);
    expect((await call('POST', `${PATH}/${Bun.randomUUIDv7()}`, { enabled: false })).status).toBe(404);
    expect((await (await api.otherAccount()).call('POST', `${PATH}/${id}`, { enabled: false })).status).toBe(404);
    expect((await call('POST', `${PATH}/${id}`, {})).status).toBe(422);
    expect(
      (await call('POST', `${PATH}/${id}`, { rule: 'true', condition: { variable: 'event', operator: 'is_null' } }))
        .status,
    ).toBe(422);
  });
});

describe('DELETE /automation/triggers/{trigger_id}', () => {
  test('204: resolves its cases, cancels pending deliveries, frees the name', async () => {
    const created = await make({ rule: 'event == "role_created"', actions: [HOOK] });
    await db.transaction((tx) =>
      emit(tx, {
        account_id: server.account_id,
        event: 'role_created',
        actor: SYSTEM_ACTOR,
        resource: { type: 'role', id: 'x', name: 'x' },
        summary: 'made',
      }),
    );
    await evaluatePending(server.deps);
    expect((await call('GET', `${PATH}/${created.id}`)).body).toMatchObject({
      open_cases_count: 1,
      fire_count: 1,
      state: 'triggered',
    });
    const answer = await call('DELETE', `${PATH}/${created.id}`);
    expect([answer.status, answer.body]).toEqual([204, null]);
    const [closed] = await db.select().from(cases).where(eq(cases.trigger_id, created.id));
    expect([closed?.status, closed?.resolution]).toEqual(['resolved', 'trigger_deleted']);
    const sent = await db.select().from(deliveries).where(eq(deliveries.trigger_id, created.id));
    expect(sent.map((delivery) => delivery.status)).toEqual(['cancelled']);
    expect((await call('GET', `${PATH}/${created.id}`)).status).toBe(404);
    expect((await call('DELETE', `${PATH}/${created.id}`)).status).toBe(404);
    expect((await make({ name: created.name })).id).not.toBe(created.id);
    expect((await kindsOf(created.id)).at(-1)).toBe('trigger_deleted');
  });

  test('400 system_trigger', async () => {
    const { id } = await systemTrigger();
    const answer = await call('DELETE', `${PATH}/${id}`);
    expect([answer.status, answer.body.code]).toEqual([400, 'system_trigger']);
  });

  test('401, 403, 404', async () => {
    const { id } = await make();
    expect((await api.anonymous('DELETE', `${PATH}/${id}`)).status).toBe(401);
    expect((await api.as(await api.keyWith(['triggers.update']))('DELETE', `${PATH}/${id}`)).status).toBe(403);
    expect((await (await api.otherAccount()).call('DELETE', `${PATH}/${id}`)).status).toBe(404);
  });
});
