import { sql } from 'drizzle-orm';
import type { Db } from '../../../db/types.ts';
import { emitTriggerDisabled } from '../../events/trigger-events.ts';
import type { TriggerTally } from './match-events.ts';

/** A trigger is disabled after this many evaluations in a row that fail because of its rule. */
export const MAX_CONSECUTIVE_ERRORS = 20;
/** `last_evaluated_at` may lag by this much: writing it with every batch would be most of the work. */
const MAX_EVALUATED_LAG_SECONDS = 5;

/** The firings of one trigger in a batch, and the state they leave it in. */
export interface Firings {
  count: number;
  state: 'pending' | 'triggered' | 'cooldown' | 'idle' | null;
}

/** Stores the results of a batch. `updated_at` stays as it is: a change of it makes the trigger index reload. */
export async function storeTallies(
  db: Db,
  batch: { tallies: Iterable<TriggerTally>; fired: ReadonlyMap<string, Firings>; now: string },
): Promise<void> {
  const { fired, now } = batch;
  const tallies = [...batch.tallies];
  const noteworthy = tallies.filter(
    ({ trigger, errors, succeeded }) =>
      errors > 0 || fired.has(trigger.id) || (succeeded && trigger.consecutive_errors > 0),
  );
  await storeFailures(db, { noteworthy, fired, now });
  const evaluated = tallies.map(({ trigger }) => trigger.id);
  if (evaluated.length === 0) return;
  await db.execute(sql`
    update triggers set last_evaluated_at = ${now}
    where id = any(${sql.param(evaluated)}::uuid[])
      and (last_evaluated_at is null or last_evaluated_at < ${now}::timestamptz - make_interval(secs => ${MAX_EVALUATED_LAG_SECONDS}))`);
}

async function storeFailures(
  db: Db,
  batch: { noteworthy: TriggerTally[]; fired: ReadonlyMap<string, Firings>; now: string },
): Promise<void> {
  const { noteworthy, fired, now } = batch;
  if (noteworthy.length === 0) return;
  const rows = noteworthy.map(({ trigger, errors, last_error, blamed, succeeded }) => ({
    id: trigger.id,
    errors,
    blamed,
    succeeded,
    last_error: last_error && `${last_error.code}: ${last_error.message}`,
    fired: fired.get(trigger.id)?.count ?? 0,
    state: fired.get(trigger.id)?.state ?? null,
  }));
  const disabled = await db.execute<{ id: string; account_id: string; name: string; last_error: string | null }>(sql`
    with tally as (
      select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as v(
        id uuid, errors int, blamed int, succeeded boolean, last_error text, fired int, state text)
    ), changed as (
      update triggers t set
        fire_count = t.fire_count + v.fired,
        last_fired_at = case when v.fired > 0 then ${now}::timestamptz else t.last_fired_at end,
        last_evaluated_at = ${now}::timestamptz,
        error_count = t.error_count + v.errors,
        last_error = coalesce(v.last_error, t.last_error),
        consecutive_errors = case when v.succeeded then v.blamed else t.consecutive_errors + v.blamed end,
        state = case
          when case when v.succeeded then v.blamed else t.consecutive_errors + v.blamed end >= ${MAX_CONSECUTIVE_ERRORS}
            then 'auto_disabled'
          when v.state is not null then v.state
          when v.blamed > 0 and t.state = 'idle' then 'errored'
          when v.succeeded and v.blamed = 0 and t.state = 'errored' then 'idle'
          else t.state end
      from tally v where t.id = v.id and t.state <> 'auto_disabled'
      returning t.id, t.account_id, t.name, t.last_error, t.state
    )
    select id, account_id, name, last_error from changed where state = 'auto_disabled'`);
  for (const trigger of disabled) {
    const { last_error } = trigger;
    await emitTriggerDisabled(db, { trigger, errors: MAX_CONSECUTIVE_ERRORS, last_error });
  }
}
