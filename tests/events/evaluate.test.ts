import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accounts, events, triggerMatches, triggers } from '../../db/schema/index.ts';
import { refreshTriggerStates } from '../../server/automation/evaluation/overdue-triggers.ts';
import { SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { compileRule } from '../../server/automation/rules/compile.ts';
import { DEFAULT_CASE_SETTINGS } from '../../server/automation/triggers/trigger-index.ts';
import { evaluationBench } from './evaluate-support.ts';

const { server, age, casesOf, evaluate, eventRow, firings, happen, makeTrigger, triggerRow } = await evaluationBench();

const connection = () => Bun.randomUUIDv7();

describe('an event that matches', () => {
  test('opens one case of its group, and records the triggers and cases it concerned', async () => {
    const id = await makeTrigger('event == "connection_failed" && retry_count >= 3', { group_by: ['connection_id'] });
    const connection_id = connection();
    const early = await happen({ event: 'connection_failed', connection_id, payload: { retry_count: 2 } });
    const late = await happen({ event: 'connection_failed', connection_id, payload: { retry_count: 3 } });
    await evaluate();
    const [opened] = await casesOf(id);
    expect(opened?.group).toEqual({ connection_id });
    expect((await eventRow(early)).matched_trigger_ids).not.toContain(id);
    const matched = await eventRow(late);
    expect(matched.processing_status).toBe('processed');
    expect(matched.matched_trigger_ids).toContain(id);
    expect(matched.case_ids).toContain(opened!.id);
    const trigger = await triggerRow(id);
    expect([trigger.fire_count, trigger.state, trigger.error_count]).toEqual([1, 'triggered', 0]);
    expect(trigger.last_fired_at).not.toBeNull();
  });

  test('is evaluated once, even when it is claimed again', async () => {
    const id = await makeTrigger('event == "role_created"');
    const event = await happen({ event: 'role_created' });
    await evaluate();
    await server.deps.db.update(events).set({ processing_status: 'received' }).where(eq(events.id, event));
    await evaluate();
    expect(await firings(id)).toBe(1);
    expect((await casesOf(id))[0]?.event_count).toBe(1);
  });

  test('fifty at once with several evaluators: one case that counts fifty', async () => {
    const id = await makeTrigger('event == "role_updated"', { group_by: [] });
    await Promise.all(Array.from({ length: 50 }, () => happen({ event: 'role_updated' })));
    await Promise.all([evaluate(), evaluate(), evaluate()]);
    await evaluate();
    const all = await casesOf(id);
    expect(all.map((one) => one.event_count)).toEqual([50]);
  });

  test('in another account does not fire', async () => {
    const id = await makeTrigger('event == "role_deleted"');
    const [other] = await server.deps.db.insert(accounts).values({ name: 'Other' }).returning();
    await happen({ event: 'role_deleted', account_id: other!.id });
    await evaluate();
    expect(await firings(id)).toBe(0);
  });

  test('does not fire a trigger that is disabled or deleted', async () => {
    const disabled = await makeTrigger('event == "user_enabled"', { enabled: false });
    const deleted = await makeTrigger('event == "user_enabled"', { deleted_at: new Date().toISOString() });
    await happen({ event: 'user_enabled' });
    await evaluate();
    expect([await firings(disabled), await firings(deleted)]).toEqual([0, 0]);
  });

  test('fires by the latest version of the rule', async () => {
    const id = await makeTrigger('event == "user_disabled"');
    await happen({ event: 'user_disabled' });
    await evaluate();
    const compiled = compileRule('event == "user_disabled" && email == "a@example.test"');
    await server.deps.db.update(triggers).set({ normalized_rule: compiled.normalized }).where(eq(triggers.id, id));
    await happen({ event: 'user_disabled', payload: { email: 'b@example.test' } });
    await happen({ event: 'user_disabled', payload: { email: 'a@example.test' } });
    await evaluate();
    expect(await firings(id)).toBe(2);
  });
});

describe('thresholds and cooldowns', () => {
  test('fires at the third match of a group within the window, and then restarts the count', async () => {
    const id = await makeTrigger('event == "stream_run_failed"', { threshold: 3, within_seconds: 3600 });
    const [one, other] = [connection(), connection()];
    for (const connection_id of [one, one, other]) await happen({ event: 'stream_run_failed', connection_id });
    await evaluate();
    expect(await firings(id)).toBe(0);
    expect((await triggerRow(id)).state).toBe('pending');
    await happen({ event: 'stream_run_failed', connection_id: one });
    await evaluate();
    expect(await firings(id)).toBe(1);
    expect((await casesOf(id)).map((opened) => opened.group)).toEqual([{ connection_id: one }]);
    for (let at = 0; at < 2; at += 1) await happen({ event: 'stream_run_failed', connection_id: one });
    await evaluate();
    expect(await firings(id)).toBe(1);
  });

  test('loses no match when several evaluators claim hundreds of events', async () => {
    const id = await makeTrigger('event == "role_assigned"', { threshold: 450, group_by: [] });
    const event = {
      account_id: server.account_id,
      event: 'role_assigned',
      category: 'role' as const,
      severity: 'info' as const,
      actor: SYSTEM_ACTOR,
      resource: { type: 'role', id: 'x', name: null },
      summary: 'assigned',
    };
    await server.deps.db.insert(events).values(Array.from({ length: 450 }, () => ({ ...event })));
    await Promise.all([evaluate(), evaluate(), evaluate()]);
    await evaluate();
    expect(await firings(id)).toBe(1);
  });

  test('ignores matches outside of the window', async () => {
    const id = await makeTrigger('event == "stream_run_stopped"', { threshold: 2, within_seconds: 60 });
    await happen({ event: 'stream_run_stopped' });
    await evaluate();
    await age(61);
    await happen({ event: 'stream_run_stopped' });
    await evaluate();
    expect(await firings(id)).toBe(0);
    await happen({ event: 'stream_run_stopped' });
    await evaluate();
    expect(await firings(id)).toBe(1);
  });

  test('does not fire during the cooldown, which is separate for each group', async () => {
    const id = await makeTrigger('event == "connection_locked"', { cooldown_seconds: 600 });
    const [one, other] = [connection(), connection()];
    for (const connection_id of [one, one, other]) await happen({ event: 'connection_locked', connection_id });
    await evaluate();
    expect(await firings(id)).toBe(2);
    expect((await triggerRow(id)).state).toBe('cooldown');
    await age(601);
    await happen({ event: 'connection_locked', connection_id: one });
    await evaluate();
    expect(await firings(id)).toBe(3);
    await age(601);
    await refreshTriggerStates(server.deps);
    expect((await triggerRow(id)).state).toBe('idle');
  });

  test('fires at most sixty times a minute during a storm', async () => {
    const id = await makeTrigger('event == "user_logged_in"', { group_by: ['user_id'] });
    for (let at = 0; at < 70; at += 1) await happen({ event: 'user_logged_in', user_id: connection() });
    await evaluate();
    expect(await firings(id)).toBe(60);
    const matched = await server.deps.db.select().from(triggerMatches).where(eq(triggerMatches.trigger_id, id));
    expect(matched.length).toBe(70);
  });
});

describe('resolution', () => {
  test('the matching recovery resolves the case of its group', async () => {
    const id = await makeTrigger('event in ["connection_failed", "connection_partially_failed"]');
    const [one, other] = [connection(), connection()];
    for (const connection_id of [one, other]) await happen({ event: 'connection_failed', connection_id });
    await evaluate();
    const recovery = await happen({ event: 'connection_succeeded', connection_id: one });
    await evaluate();
    const all = await casesOf(id);
    expect(all.map((opened) => [opened.group.connection_id, opened.status])).toEqual([
      [one, 'resolved'],
      [other, 'open'],
    ]);
    expect((await eventRow(recovery)).case_ids).toContain(all[0]!.id);
  });

  test('a resolve_rule replaces the default recovery', async () => {
    const resolve_rule = 'event == "connection_succeeded" && rows_loaded > 0';
    const id = await makeTrigger('event == "connection_failed"', {
      case_settings: { ...DEFAULT_CASE_SETTINGS, resolve_rule },
    });
    const connection_id = connection();
    await happen({ event: 'connection_failed', connection_id });
    await happen({ event: 'connection_succeeded', connection_id, payload: { rows_loaded: 0 } });
    await evaluate();
    expect((await casesOf(id))[0]?.status).toBe('open');
    await happen({ event: 'connection_succeeded', connection_id, payload: { rows_loaded: 5 } });
    await evaluate();
    expect((await casesOf(id))[0]?.status).toBe('resolved');
    expect((await triggerRow(id)).state).toBe('idle');
  });

  test('without auto_resolve nothing resolves the case', async () => {
    const id = await makeTrigger('event == "connection_failed"', {
      case_settings: { ...DEFAULT_CASE_SETTINGS, auto_resolve: false },
    });
    const connection_id = connection();
    await happen({ event: 'connection_failed', connection_id });
    await happen({ event: 'connection_succeeded', connection_id });
    await evaluate();
    expect((await casesOf(id))[0]?.status).toBe('open');
  });
});
