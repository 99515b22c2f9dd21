import { createHash } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { type TriggerGroupRow, triggerGroups, type TriggerRow } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';

/** The state of a trigger for one group of events. */
export type GroupState = Pick<
  TriggerGroupRow,
  'trigger_id' | 'group_key' | 'group' | 'matched_at' | 'cooldown_until' | 'due_at' | 'event_id'
>;

/** The values that an event is grouped by. A missing value is null. */
export const groupOf = (trigger: TriggerRow, facts: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(trigger.group_by.map((name) => [name, facts[name] ?? null]));

export function groupKey(group: Record<string, unknown>): string {
  const canonical = JSON.stringify(
    Object.keys(group)
      .toSorted()
      .map((name) => [name, group[name]]),
  );
  return createHash('sha256').update(canonical).digest('hex');
}

/** Triggers that fire at every match keep no state. */
export const remembersGroups = (trigger: TriggerRow) =>
  trigger.threshold > 1 || trigger.cooldown_seconds > 0 || trigger.posture === 'proactive';

/** The group states of one batch: read together, changed in memory, written together. */
export class Groups {
  readonly #states = new Map<string, GroupState>();
  readonly #changed = new Set<GroupState>();

  constructor(states: GroupState[]) {
    for (const state of states) this.#states.set(`${state.trigger_id} ${state.group_key}`, state);
  }

  /** The state of a group, which the caller may change. */
  of(trigger: TriggerRow, group: Record<string, unknown>): GroupState {
    const group_key = groupKey(group);
    const key = `${trigger.id} ${group_key}`;
    let state = this.#states.get(key);
    if (!state) {
      state = {
        trigger_id: trigger.id,
        group_key,
        group,
        matched_at: [],
        cooldown_until: null,
        due_at: null,
        event_id: null,
      };
      this.#states.set(key, state);
    }
    this.#changed.add(state);
    return state;
  }

  async store(db: Db): Promise<void> {
    if (this.#changed.size === 0) return;
    await db
      .insert(triggerGroups)
      .values([...this.#changed])
      .onConflictDoUpdate({
        target: [triggerGroups.trigger_id, triggerGroups.group_key],
        set: {
          matched_at: sql`excluded.matched_at`,
          cooldown_until: sql`excluded.cooldown_until`,
          due_at: sql`excluded.due_at`,
          event_id: sql`excluded.event_id`,
          updated_at: sql`now()`,
        },
      });
  }
}

/** The caller holds the account's evaluation lock, so no other evaluator changes these states. */
export async function loadGroups(db: Db, keys: { trigger_id: string; group_key: string }[]): Promise<Groups> {
  if (keys.length === 0) return new Groups([]);
  const rows = await db
    .select()
    .from(triggerGroups)
    .where(
      sql`(${triggerGroups.trigger_id}, ${triggerGroups.group_key}) in (
        select trigger_id, group_key from jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as k(trigger_id uuid, group_key text))`,
    );
  return new Groups(rows.map(({ updated_at: _updated_at, ...state }) => state));
}

/** Counts a match in the sliding window. True when the trigger fires, which empties the window. */
export function countMatch(trigger: TriggerRow, state: GroupState, occurred_at: string): boolean {
  if (state.cooldown_until !== null && occurred_at < state.cooldown_until) return false;
  const since = trigger.within_seconds > 0 ? later(occurred_at, -trigger.within_seconds) : '';
  state.matched_at = [...state.matched_at.filter((at) => at > since), occurred_at].slice(-trigger.threshold);
  if (state.matched_at.length < trigger.threshold) return false;
  state.matched_at = [];
  if (trigger.cooldown_seconds > 0) state.cooldown_until = later(occurred_at, trigger.cooldown_seconds);
  return true;
}

/** Proactive triggers: from the first match on, the expected event must arrive in time. */
export function startWaiting(trigger: TriggerRow, state: GroupState, event: { id: string; occurred_at: string }): void {
  if (state.due_at !== null) return;
  state.due_at = later(event.occurred_at, trigger.within_seconds);
  state.event_id = event.id;
  state.matched_at = [];
}

/** Proactive triggers: counts an expected event; after `threshold` of them in time, the wait ends. */
export function countExpected(trigger: TriggerRow, state: GroupState, occurred_at: string): void {
  if (state.due_at === null || occurred_at > state.due_at) return;
  state.matched_at = [...state.matched_at, occurred_at];
  if (state.matched_at.length < trigger.threshold) return;
  Object.assign(state, { matched_at: [], due_at: null, event_id: null });
}

export const later = (instant: string, seconds: number) => new Date(Date.parse(instant) + seconds * 1000).toISOString();
