import { and, eq, sql } from 'drizzle-orm';
import { cases, events, triggerMatches, type TriggerRow, triggers } from '../../db/schema/index.ts';
import { emit, type NewEvent, SYSTEM_ACTOR } from '../../server/events/emit.ts';
import { evaluatePending } from '../../server/automation/evaluation/evaluation-loop.ts';
import { compileRule } from '../../server/automation/rules/compile.ts';
import { DEFAULT_CASE_SETTINGS } from '../../server/automation/triggers/trigger-index.ts';
import { testDeps } from '../support/database.ts';

/** A service without its own evaluator, where tests insert triggers into the database and `emit` events. */
export async function evaluationBench() {
  const server = await testDeps({ role: 'worker' });
  const { db } = server.deps;
  await evaluatePending(server.deps);
  return {
    server,
    evaluate: () => evaluatePending(server.deps),
    async makeTrigger(rule: string, settings: Partial<TriggerRow> = {}): Promise<string> {
      const compiled = compileRule(rule);
      const id = Bun.randomUUIDv7();
      await db.insert(triggers).values({
        id,
        account_id: server.account_id,
        name: `trigger ${id}`,
        rule,
        normalized_rule: compiled.normalized,
        matched_kinds: compiled.kinds,
        actions: [],
        severity: 'warning',
        group_by: ['connection_id'],
        case_settings: { ...DEFAULT_CASE_SETTINGS },
        ...settings,
      });
      return id;
    },
    /** Returns the event's id. */
    async happen(event: Partial<NewEvent> & Pick<NewEvent, 'event'>): Promise<string> {
      const marker = Bun.randomUUIDv7();
      await emit(db, {
        account_id: server.account_id,
        actor: SYSTEM_ACTOR,
        resource: { type: 'test', id: marker, name: null },
        summary: 'something happened',
        ...event,
      });
      const [row] = await db.select({ id: events.id }).from(events).where(sql`${events.resource} ->> 'id' = ${marker}`);
      return row!.id;
    },
    triggerRow: async (id: string) => (await db.select().from(triggers).where(eq(triggers.id, id)))[0]!,
    eventRow: async (id: string) => (await db.select().from(events).where(eq(events.id, id)))[0]!,
    casesOf: (id: string) => db.select().from(cases).where(eq(cases.trigger_id, id)).orderBy(cases.number),
    async firings(id: string): Promise<number> {
      const fired = and(eq(triggerMatches.trigger_id, id), eq(triggerMatches.fired, true));
      return (await db.select().from(triggerMatches).where(fired)).length;
    },
    /** Moves all events into the past, as waiting would. */
    async age(seconds: number): Promise<void> {
      const moved = sql`(at::timestamptz - make_interval(secs => ${seconds})) at time zone 'UTC'`;
      await db.execute(sql`update events set occurred_at = occurred_at - make_interval(secs => ${seconds})`);
      await db.execute(sql`update trigger_groups set
        matched_at = array(select to_char(${moved}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') from unnest(matched_at) at),
        cooldown_until = cooldown_until - make_interval(secs => ${seconds}),
        due_at = due_at - make_interval(secs => ${seconds})`);
    },
  };
}
