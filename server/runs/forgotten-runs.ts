import { and, eq, ne, or, sql } from 'drizzle-orm';
import { type StreamRunRow, streamRuns } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';

/**
 * Whether the control database knows nothing of a stream run that a destination names. False once an earlier run of the
 * stream has failed because of it: what was created since is not in the backup.
 */
export async function isForgotten(
  db: Db,
  { id, stream_id }: Pick<StreamRunRow, 'id' | 'stream_id'>,
  named: string,
): Promise<boolean> {
  const reported = and(
    eq(streamRuns.stream_id, stream_id),
    ne(streamRuns.id, id),
    sql`${streamRuns.error}->>'code' = 'destination_went_ahead'`,
    sql`position(${named} in ${streamRuns.error}->>'message') > 0`,
  );
  const [known] = await db
    .select({ id: streamRuns.id })
    .from(streamRuns)
    .where(or(eq(streamRuns.id, named), reported))
    .limit(1);
  return known === undefined;
}
