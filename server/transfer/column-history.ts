import { eq } from 'drizzle-orm';
import { connectionStreams } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { StreamSchema, TargetColumn } from '../connectors/contract/connector.ts';
import type { Attempt } from './attempt.ts';
import type { Claim } from '../runs/claim-stream.ts';
import { givesChanges } from '../pipeline/stream-defaults.ts';
import type { TransferPlan } from '../pipeline/transfer-plan.ts';

/** Remembers as what the columns of a stream were written, for the next run to see which of them have changed. */
export async function recordColumns(db: Db, { stream }: Pick<Claim, 'stream'>, plan: TransferPlan): Promise<void> {
  const loaded_columns = { ...stream.loaded_columns };
  for (const { target } of plan.columns) {
    const { type, source_type, dialect } = target;
    loaded_columns[target.name] = { type, source_type, dialect };
  }
  if (Bun.deepEquals(loaded_columns, stream.loaded_columns ?? {})) return;
  await db.update(connectionStreams).set({ loaded_columns }).where(eq(connectionStreams.id, stream.id));
}

/** The columns of a plan as a destination is handed them. */
export const targetColumns = (plan: TransferPlan, { stream }: Pick<Claim, 'stream'>): TargetColumn[] =>
  plan.columns.map(({ target }) => ({ ...target, previous: stream.loaded_columns?.[target.name] ?? null }));

/** Says of columns that an incremental stream gets from this run on what is not in them, and how it comes there. */
export function tellOfNewColumns(attempt: Attempt, schema: StreamSchema, plan: TransferPlan): void {
  const { stream, run } = attempt.claim;
  const { loaded_columns, sync_mode, state, name } = stream;
  if (loaded_columns === null || sync_mode !== 'incremental' || state === null || run.custom_run_plan_id !== null)
    return;
  const added = plan.columns
    .map(({ target }) => target.name)
    .filter((column) => !Object.hasOwn(loaded_columns, column));
  if (added.length === 0) return;
  const follows = givesChanges(schema, stream);
  const moved = follows ? 'they change at the source' : 'their cursor moves';
  attempt.warn(
    'columns_added',
    `${name} is loaded with ${added.join(', ')} from this run on. Rows loaded before have no value there until ${moved}, ` +
      `or ${follows ? RESET : stream.destination_sync_mode === 'append' ? AGAIN : MERGED}`,
  );
}

const RESET = "until the stream's cursor is reset: the next run then reads the whole table";
const MERGED = `${RESET}. A custom run over the days that matter does the same for those`;
const AGAIN = `${RESET}, and appends its rows once more`;
