import type { ConnectorContext } from '../../contract/connector.ts';
import { STATE_TABLE } from '../../kits/sql/state-row.ts';
import { withSession } from '../connection/session.ts';
import type { PostgresDestinationConfig } from '../connection/settings.ts';
import { relation } from '../connection/sql.ts';
import type { PgTarget } from './target.ts';

/**
 * Waits for the last commit of a stream in a session of its own, usually a kept one. The server answers a commit after it
 * has deleted the files of dropped tables, which takes 80 ms for 200 MB. The commit is durable and visible before: as soon
 * as it releases the row of the state.
 * @returns false: it is not committed, or that is unknown. Never rejects
 */
export async function isCommitted(
  ctx: ConnectorContext<PostgresDestinationConfig>,
  { schema, connection_id, stream_id, stream_run_id, fence }: PgTarget,
): Promise<boolean> {
  // Conditions on what the commit changes would not find the row as it is before, and not wait for it.
  const text = `select stream_run_id = $3 and fence = $4::bigint and finished from ${relation(schema, STATE_TABLE)}
    where connection_id = $1 and stream_id = $2 for share`;
  const values = [connection_id, stream_id, stream_run_id, String(fence)];
  try {
    // Not watched: a wait for the lock of this writer's own commit is none for others.
    const { rows } = await withSession({ ...ctx, watch: undefined }, { phase: 'run' }, (session) =>
      session.query(text, { values, slow: true }),
    );
    return rows[0]?.[0] === 't';
  } catch {
    return false;
  }
}
