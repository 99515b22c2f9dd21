import { eq } from 'drizzle-orm';
import { type ConnectionRow, connectionStreams, type StreamRow } from '../../../../db/schema/index.ts';
import type { Ctx } from '../../../api/procedure.ts';
import { type PlannedStream, streamKey } from './selection.ts';
import { settingsOf } from '../../../pipeline/stream-check/settings.ts';

/** Parameters of one statement are limited to 65,535; a row takes 16 of them. */
const ROWS_AT_ONCE = 2000;

/**
 * Writes the streams of a connection: new ones and changed ones. None is ever deleted: past runs refer to
 * them. Returns whether anything changed.
 */
export async function storeStreams(
  ctx: Ctx,
  connection: ConnectionRow,
  plan: { before: StreamRow[]; planned: Pick<PlannedStream, 'name' | 'namespace' | 'settings'>[] },
): Promise<boolean> {
  const known = new Map(plan.before.map((row) => [streamKey(row), row]));
  const fresh = plan.planned.filter((stream) => !known.has(streamKey(stream)));
  for (let start = 0; start < fresh.length; start += ROWS_AT_ONCE) {
    await ctx.db.insert(connectionStreams).values(
      fresh.slice(start, start + ROWS_AT_ONCE).map(({ name, namespace, settings }) => ({
        account_id: connection.account_id,
        connection_id: connection.id,
        name,
        namespace,
        ...settings,
      })),
    );
  }
  let changed = fresh.length > 0;
  for (const stream of plan.planned) {
    const row = known.get(streamKey(stream));
    if (!row || Bun.deepEquals(settingsOf(row), stream.settings)) continue;
    await ctx.db
      .update(connectionStreams)
      .set({
        ...stream.settings,
        ...(row.destination_table !== stream.settings.destination_table && { fresh_at: null }),
      })
      .where(eq(connectionStreams.id, row.id));
    changed = true;
  }
  return changed;
}

export const readStreams = (ctx: Ctx, connection_id: string): Promise<StreamRow[]> =>
  ctx.db.select().from(connectionStreams).where(eq(connectionStreams.connection_id, connection_id));
