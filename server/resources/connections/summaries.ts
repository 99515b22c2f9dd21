import { and, inArray } from 'drizzle-orm';
import { z } from 'zod';
import { connections, RUN_STATUSES } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { count, isId, whole } from '../../api/wire-types.ts';
import { presentConnection } from './present.ts';
import { ofAccount, selectSummaries } from './query.ts';
import { ConnectionSchema } from './schema.ts';

const { shape } = ConnectionSchema;

/** One of the newest runs of a connection. */
const StripRun = z.object({
  id: z.string(),
  number: whole(),
  status: z.enum(RUN_STATUSES),
  created_at: shape.created_at,
  duration_ms: count().nullable(),
});

/** A connection in a list: without streams, with its last runs. */
export const ConnectionSummary = z.object({
  id: shape.id,
  name: shape.name,
  kind: shape.kind,
  status: shape.status,
  status_reason: shape.status_reason,
  health: shape.health,
  source: shape.source,
  destination: shape.destination,
  schedule: shape.schedule,
  schema_change_status: shape.schema_change_status,
  tags: shape.tags,
  folder: shape.folder,
  active_run_id: shape.active_run_id,
  next_run_at: shape.next_run_at,
  consecutive_failures: shape.consecutive_failures,
  last_run: shape.last_run,
  fresh_at: z.string().nullable().meta({
    format: 'date-time',
    description: 'Of the selected stream that is the furthest behind; null if one was never loaded.',
  }),
  recent_runs: z.array(StripRun).meta({ description: 'At most the last 16, newest last.' }),
});
export type ConnectionSummary = z.infer<typeof ConnectionSummary>;

export const SummaryQuery = z.object({
  id: z.array(z.string()).max(100).optional().meta({ description: 'Only these connections; repeat the parameter.' }),
});

/** Connections of the account, newest first: all, or those with these ids. */
export async function listSummaries(ctx: Ctx, { id: ids }: z.infer<typeof SummaryQuery>): Promise<ConnectionSummary[]> {
  // Ids are opaque to clients: text that is not a UUID matches nothing.
  const named = ids && inArray(connections.id, ids.filter(isId));
  const records = await selectSummaries(ctx.db, and(ofAccount(ctx.principal.account_id), named));
  const now = ctx.deps.now();
  return records.map(({ recent_runs, fresh_at, ...record }) => {
    const shown = presentConnection({ ...record, streams: [], log_lag: null, created_by: null, updated_by: null }, now);
    return { ...picked(shown), fresh_at, recent_runs };
  });
}

/** Lists every key: this trusted output is not parsed, so extra keys would reach clients. */
const picked = (connection: ConnectionSchema): Omit<ConnectionSummary, 'recent_runs' | 'fresh_at'> => ({
  id: connection.id,
  name: connection.name,
  kind: connection.kind,
  status: connection.status,
  status_reason: connection.status_reason,
  health: connection.health,
  source: connection.source,
  destination: connection.destination,
  schedule: connection.schedule,
  schema_change_status: connection.schema_change_status,
  tags: connection.tags,
  folder: connection.folder,
  active_run_id: connection.active_run_id,
  next_run_at: connection.next_run_at,
  consecutive_failures: connection.consecutive_failures,
  last_run: connection.last_run,
});
