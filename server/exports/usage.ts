import { and, eq, gte, sql } from 'drizzle-orm';
import { connections, streamRuns } from '../../db/schema/index.ts';
import type { Deps } from '../deps.ts';
import type { StreamUsage } from './document.ts';

const DAYS = 30;

/** Recent usage of a source's streams, keyed by JSON of namespace and name. */
export async function readUsage(deps: Deps, source_id: string): Promise<Map<string, StreamUsage>> {
  const since = new Date(deps.now().getTime() - DAYS * 86_400_000).toISOString();
  const rows = await deps.db
    .select({
      namespace: streamRuns.namespace,
      name: streamRuns.stream_name,
      connections: sql<number>`count(distinct ${streamRuns.connection_id})::int`,
      rows_loaded: sql<string>`sum(${streamRuns.rows_loaded})`,
      last: sql<string | null>`max(${streamRuns.finished_at}) filter (where ${streamRuns.status} = 'succeeded')`,
    })
    .from(streamRuns)
    .innerJoin(connections, eq(connections.id, streamRuns.connection_id))
    .where(and(eq(connections.source_id, source_id), gte(streamRuns.created_at, since)))
    .groupBy(streamRuns.namespace, streamRuns.stream_name);
  return new Map(
    rows.map((row) => [
      JSON.stringify([row.namespace, row.name]),
      {
        connections: row.connections,
        rows_loaded: Number(row.rows_loaded),
        last_succeeded_at: row.last && new Date(row.last).toISOString(),
      },
    ]),
  );
}
