import { eq } from 'drizzle-orm';
import { connectionStreams } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { TargetColumn } from '../connectors/define.ts';
import type { Claim } from './claims.ts';
import type { TransferPlan } from './transfer-plan.ts';

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
