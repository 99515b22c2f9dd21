import { describe, expect, test } from 'bun:test';
import { and, eq, sql } from 'drizzle-orm';
import { events, triggerGroups } from '../../db/schema/index.ts';
import { startEvaluator } from '../../server/automation/evaluation/evaluation-loop.ts';
import { fireOverdue } from '../../server/automation/evaluation/overdue-triggers.ts';
import { until } from '../support/until.ts';
import { evaluationBench } from './evaluate-support.ts';

const bench = await evaluationBench();
const { server, casesOf, evaluate, eventRow, firings, happen, makeTrigger, triggerRow } = bench;
const { db } = server.deps;
const connection = () => Bun.randomUUIDv7();

describe('loops', () => {
  test('end at an event too deep in a chain of causes, which is not evaluated', async () => {
    const id = await makeTrigger('event == "role_created"');
    const events_ = [];
    for (const causation_depth of [3, 4]) events_.push(await happen({ event: 'role_created', causation_depth }));
    await evaluate();
    expect(await firings(id)).toBe(1);
    expect((await eventRow(events_[1]!)).processing_status).toBe('processed');
  });

  test('are prevented: events about a trigger do not fire it, those about another do', async () => {
    const id = await makeTrigger('event in ["trigger_updated", "action_failed", "case_opened"]', { group_by: [] });
    for (const event of ['trigger_updated', 'action_failed', 'case_opened'] as const) {
      await happen({ event, payload: { trigger_id: id } });
    }
    await evaluate();
    expect(await firings(id)).toBe(0);
    await happen({ event: 'action_failed', payload: { trigger_id: connection() } });
    await evaluate();
    expect(await firings(id)).toBe(1);
  });

  test('are prevented: a trigger on any event ignores the events it causes', async () => {
    const id = await makeTrigger('severity != "x"', { group_by: ['event'] });
    await happen({ event: 'role_assigned' });
    for (let round = 0; round < 10 && (await evaluate()) > 0; round += 1) continue;
    expect(await evaluate()).toBe(0);
    await db.execute(sql`update triggers set enabled = false where id = ${id}`);
  });
});

describe('evaluation errors', () => {
  const failing = 'event == "user_updated" && 10 / (days - days) > 1'.replaceAll('days', 'size(role_names)');

  test('are no match, and are counted and shown', async () => {
    const id = await makeTrigger('event == "user_added" && email.startsWith("a")');
    const event = await happen({ event: 'user_added' });
    await evaluate();
    const trigger = await triggerRow(id);
    expect([trigger.error_count, trigger.consecutive_errors, trigger.state]).toEqual([1, 1, 'errored']);
    expect(trigger.last_error).toStartWith('evaluation_error: ');
    expect((await eventRow(event)).matched_trigger_ids).not.toContain(id);
    await happen({ event: 'user_added', payload: { email: 'a@example.test' } });
    await evaluate();
    const after = await triggerRow(id);
    expect([after.consecutive_errors, after.fire_count, after.state]).toEqual([0, 1, 'triggered']);
  });

  test('disable the trigger after twenty in a row, with an event, but not after nineteen', async () => {
    const id = await makeTrigger(failing);
    const fail = async (times: number) => {
      for (let at = 0; at < times; at += 1) await happen({ event: 'user_updated', payload: { role_names: [] } });
      await evaluate();
    };
    await fail(19);
    expect((await triggerRow(id)).state).toBe('errored');
    await fail(1);
    const trigger = await triggerRow(id);
    expect([trigger.state, trigger.enabled, trigger.error_count]).toEqual(['auto_disabled', true, 20]);
    expect(trigger.last_error).toContain('division by zero');
    const emitted = await db
      .select()
      .from(events)
      .where(and(eq(events.event, 'trigger_auto_disabled'), sql`${events.payload} ->> 'trigger_id' = ${id}`));
    expect(emitted.length).toBe(1);
    await fail(1);
    expect((await triggerRow(id)).error_count).toBe(20);
  });

  test('disable nothing when too few runs or another kind of event cause them', async () => {
    const statistic = await makeTrigger('event == "connection_succeeded" && rows_loaded_zscore < -3.0');
    const anyKind = await makeTrigger('retry_count >= 3');
    for (let at = 0; at < 25; at += 1) await happen({ event: 'connection_succeeded', payload: { retry_count: 0 } });
    for (let at = 0; at < 25; at += 1) await happen({ event: 'role_unassigned' });
    await evaluate();
    expect((await triggerRow(statistic)).state).toBe('idle');
    expect((await triggerRow(statistic)).error_count).toBe(25);
    expect((await triggerRow(anyKind)).state).toBe('idle');
  });
});

describe('a proactive trigger', () => {
  const expectation = { posture: 'proactive', within_seconds: 60, expect: 'event == "connection_succeeded"' } as const;
  const inSeconds = (seconds: number) => ({ ...server.deps, now: () => new Date(Date.now() + seconds * 1000) });

  test('fires when the expected event does not come in time', async () => {
    const id = await makeTrigger('event == "connection_run_started"', expectation);
    const connection_id = connection();
    const event = await happen({ event: 'connection_run_started', connection_id });
    await evaluate();
    expect((await triggerRow(id)).state).toBe('pending');
    await fireOverdue(inSeconds(59));
    expect(await firings(id)).toBe(0);
    await Promise.all([fireOverdue(inSeconds(61)), fireOverdue(inSeconds(61))]);
    await fireOverdue(inSeconds(62));
    expect(await firings(id)).toBe(1);
    const [opened] = await casesOf(id);
    expect([opened?.group, opened?.event_count]).toEqual([{ connection_id }, 1]);
    expect((await eventRow(event)).case_ids).toContain(opened!.id);
  });

  test('does not fire when it comes, and waits for each group separately', async () => {
    const id = await makeTrigger('event == "connection_run_started"', expectation);
    const [one, other] = [connection(), connection()];
    for (const connection_id of [one, other]) await happen({ event: 'connection_run_started', connection_id });
    await happen({ event: 'connection_succeeded', connection_id: one });
    await evaluate();
    await fireOverdue(inSeconds(61));
    expect((await casesOf(id)).map((opened) => opened.group)).toEqual([{ connection_id: other }]);
  });

  test('that expects its own event watches for silence', async () => {
    const id = await makeTrigger('event == "connection_succeeded"', expectation);
    const connection_id = connection();
    await happen({ event: 'connection_succeeded', connection_id });
    await happen({ event: 'connection_succeeded', connection_id });
    await evaluate();
    const [group] = await db.select().from(triggerGroups).where(eq(triggerGroups.trigger_id, id));
    expect(group?.due_at).not.toBeNull();
    await fireOverdue(inSeconds(61));
    expect(await firings(id)).toBe(1);
  });

  test('waits for events that are not evaluated yet', async () => {
    const id = await makeTrigger('event == "connection_run_started"', expectation);
    const connection_id = connection();
    await happen({ event: 'connection_run_started', connection_id });
    await evaluate();
    await happen({ event: 'connection_succeeded', connection_id });
    await fireOverdue(inSeconds(61));
    await evaluate();
    await fireOverdue(inSeconds(61));
    expect(await firings(id)).toBe(0);
  });
});

describe('the evaluator', () => {
  test('is woken by an event, long before its own interval', async () => {
    const evaluator = await startEvaluator(server.deps);
    try {
      await until(async () => (await evaluate()) === 0);
      const waits: number[] = [];
      for (let at = 0; at < 5; at += 1) {
        const event = await happen({ event: 'role_updated' });
        const started = performance.now();
        await until(async () => (await eventRow(event)).processing_status === 'processed');
        waits.push(performance.now() - started);
      }
      expect(Math.min(...waits)).toBeLessThan(500);
    } finally {
      await evaluator.stop();
    }
  });

  test('skips an event after five tries, and processes those before and after it', async () => {
    const poison = connection();
    await db.execute(
      sql.raw(`
      create function refuse_poison() returns trigger language plpgsql as $$ begin
        if new."group" ->> 'connection_id' = '${poison}' then raise exception 'poisoned'; end if;
        return new;
      end $$`),
    );
    await db.execute(
      sql`create trigger refuse_poison before insert on cases for each row execute function refuse_poison()`,
    );
    await makeTrigger('event == "connection_resumed"');
    const before = await happen({ event: 'connection_resumed', connection_id: connection() });
    const bad = await happen({ event: 'connection_resumed', connection_id: poison });
    const after = await happen({ event: 'connection_resumed', connection_id: connection() });
    await evaluate();
    const statuses = async () =>
      Promise.all([before, bad, after].map(async (id) => (await eventRow(id)).processing_status));
    expect(await statuses()).toEqual(['processed', 'evaluating', 'received']);
    for (let at = 0; at < 4; at += 1) await evaluate();
    expect((await eventRow(bad)).evaluation_attempts).toBe(5);
    await evaluate();
    expect(await statuses()).toEqual(['processed', 'failed', 'processed']);
  });
});
