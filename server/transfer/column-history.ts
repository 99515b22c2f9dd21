import { eq } from 'drizzle-orm';
import { type ColumnHistory, connectionStreams } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { StreamSchema, TargetColumn } from '../connectors/contract/connector.ts';
import type { Attempt } from './attempt.ts';
import type { Claim } from '../runs/claim-stream.ts';
import type { LoadedStream } from '../runs/outcome.ts';
import { givesChanges } from '../pipeline/stream-defaults.ts';
import type { TransferPlan } from '../pipeline/transfer-plan.ts';
import { detailsAfter } from './silent-changes.ts';

/** Stores what the next run detects changes by. */
export async function recordLoaded(
  db: Db,
  claim: Pick<Claim, 'stream' | 'run'>,
  prepared: { schema: StreamSchema; plan: TransferPlan },
): Promise<void> {
  const loaded = newlyLoaded(claim, prepared);
  if (loaded) await db.update(connectionStreams).set(loaded).where(eq(connectionStreams.id, claim.stream.id));
}

/** The same, for the end of the attempt. Undefined: it is stored already. */
export function newlyLoaded(
  { stream, run }: Pick<Claim, 'stream' | 'run'>,
  { schema, plan }: { schema: StreamSchema; plan: TransferPlan },
): LoadedStream | undefined {
  const loaded_columns = columnsAfter({ stream }, plan);
  const loaded_details = run.custom_run_plan_id === null ? detailsAfter(schema) : stream.loaded_details;
  const before = { loaded_columns: stream.loaded_columns ?? {}, loaded_details: stream.loaded_details };
  const after = { loaded_columns, loaded_details };
  return Bun.deepEquals(after, before) ? undefined : after;
}

/** The history of all columns once the plan's are visible. */
export function columnsAfter({ stream }: Pick<Claim, 'stream'>, plan: TransferPlan): Record<string, ColumnHistory> {
  const loaded_columns = { ...stream.loaded_columns };
  for (const { target } of plan.columns) {
    const { type, source_type, dialect } = target;
    loaded_columns[target.name] = { type, source_type, dialect };
  }
  return loaded_columns;
}

/** The columns of a plan in the form that destinations take. */
export const targetColumns = (plan: TransferPlan, { stream }: Pick<Claim, 'stream'>): TargetColumn[] =>
  plan.columns.map(({ target }) => ({ ...target, previous: stream.loaded_columns?.[target.name] ?? null }));

/** Warns of columns of an incremental stream that earlier rows lack, or may have other values in, and how to fill them. */
export function warnAboutColumns(attempt: Attempt, schema: StreamSchema, plan: TransferPlan): void {
  const { stream, run } = attempt.claim;
  const { loaded_columns, sync_mode, state, name } = stream;
  if (loaded_columns === null || sync_mode !== 'incremental' || state === null || run.custom_run_plan_id !== null)
    return;
  const added = plan.columns
    .map(({ target }) => target.name)
    .filter((column) => !Object.hasOwn(loaded_columns, column));
  const follows = givesChanges(schema, stream);
  if (follows) warnAboutTypes(attempt, plan);
  if (added.length === 0) return;
  const updated = follows ? 'they change at the source' : 'their cursor changes';
  const otherwise = stream.destination_sync_mode === 'append' ? APPENDED : MERGED;
  attempt.warn(
    'columns_added',
    `New columns in ${name}: ${added.join(', ')}. Rows loaded earlier have no value in them until ${updated} or ${follows ? RESET : otherwise}`,
  );
}

/** An ALTER TABLE that computes values anew logs none of the rows. */
function warnAboutTypes(attempt: Attempt, { columns }: TransferPlan): void {
  const { loaded_columns, name } = attempt.claim.stream;
  const changed = columns.flatMap(({ target }) => {
    const [before, now] = [loaded_columns?.[target.name]?.source_type, target.source_type];
    return target.masked || !before || !now || before === now ? [] : [`${target.name} (${before} to ${now})`];
  });
  if (changed.length === 0) return;
  attempt.warn(
    'types_changed',
    `The types of columns in ${name} have changed: ${changed.join(', ')}. If their values have changed with them, rows loaded earlier keep the old ones until they change at the source or ${RESET}`,
  );
}

const RESET = "the stream's cursor is reset, so that the next run reads the whole table";
const MERGED = `${RESET}. A custom run fills them for the days it covers`;
const APPENDED = `${RESET} and append its rows again`;
