import { and, desc, eq, inArray, sql } from 'drizzle-orm';
import {
  type ConnectionRow,
  connectionRuns,
  connectionStreams,
  type StreamRow,
  streamRuns,
} from '../../../../db/schema/index.ts';
import { actorOf, type Ctx } from '../../../api/procedure.ts';
import { asUpstreamError } from '../../../api/upstream-error.ts';
import { markSourceLog } from './connector-calls.ts';
import type { AnySource, StreamSchema, StreamState } from '../../../connectors/contract/connector.ts';
import { givesChanges } from '../../../pipeline/stream-defaults.ts';
import { badRequest } from '../../../platform/errors.ts';
import { findConnection } from '../../access/connection.ts';
import { readCatalog } from '../catalog.ts';
import { streamKey } from '../streams/selection.ts';
import { connectorPair } from '../streams/update.ts';
import type { LogMarkSchema, LogProgressSchema } from './schema.ts';

const COUNTED_RUNS = 20;

/** @throws ApiError 400 `cut_over_unsupported`, and as `asUpstreamError` */
export async function markLog(ctx: Ctx, input: { connection_id: string }): Promise<LogMarkSchema> {
  const connection = await findConnection(ctx, input.connection_id);
  const { source, source_connector } = await connectorPair(ctx, connection);
  replicationOf(source_connector);
  const tables = await selectedStreams(ctx, connection);
  try {
    return await markSourceLog(ctx.deps, source, { tables, actor: actorOf(ctx.principal) });
  } catch (error) {
    throw asUpstreamError(error);
  }
}

/** @throws ApiError 400 `cut_over_unsupported`, `upstream_error` for what is not a position */
export async function logProgress(
  ctx: Ctx,
  { connection_id, position }: { connection_id: string; position?: string | undefined },
): Promise<LogProgressSchema> {
  const connection = await findConnection(ctx, connection_id);
  const { source_connector } = await connectorPair(ctx, connection);
  const covers = position === undefined ? () => true : coveringOf(source_connector, position);
  const selected = await selectedStreams(ctx, connection);
  // After the positions: at least the rows that they cover.
  const rows_applied = await rowsApplied(ctx, connection);
  const catalog = new Map((await readCatalog(ctx, connection.source_id)).map((one) => [streamKey(one), one]));
  try {
    // Refuses what is not a position, also without streams.
    covers({ cursor: null });
    const streams = selected.map((stream) => {
      const reason = reasonAgainst(stream, catalog.get(streamKey(stream)));
      const is_applied = reason === null && covers(stream.state!);
      const { id: stream_id, name: stream_name, namespace } = stream;
      return { stream_id, stream_name, namespace, is_applied, reason };
    });
    return { is_applied: streams.every(({ is_applied }) => is_applied), rows_applied, streams };
  } catch (error) {
    throw asUpstreamError(error);
  }
}

function coveringOf(source: AnySource, position: string) {
  const { covers } = replicationOf(source);
  return (state: StreamState) => covers(state, position);
}

function replicationOf({ replication, display_name }: AnySource) {
  if (replication) return replication;
  throw badRequest('cut_over_unsupported', `${display_name} has no change log that can be followed`);
}

const selectedStreams = ({ db }: Ctx, { id }: ConnectionRow): Promise<StreamRow[]> =>
  db
    .select()
    .from(connectionStreams)
    .where(and(eq(connectionStreams.connection_id, id), eq(connectionStreams.selected, true)))
    .orderBy(connectionStreams.namespace, connectionStreams.name);

async function rowsApplied({ db }: Ctx, { id }: ConnectionRow): Promise<number> {
  const newest = db
    .select({ id: connectionRuns.id })
    .from(connectionRuns)
    .where(eq(connectionRuns.connection_id, id))
    .orderBy(desc(connectionRuns.created_at), desc(connectionRuns.id))
    .limit(COUNTED_RUNS);
  const [row] = await db
    .select({
      total: sql<string>`coalesce(sum(${streamRuns.rows_loaded} + ${streamRuns.rows_updated} + ${streamRuns.rows_deleted}), 0)`,
    })
    .from(streamRuns)
    .where(inArray(streamRuns.connection_run_id, newest));
  return Number(row!.total);
}

function reasonAgainst(
  stream: StreamRow,
  schema: StreamSchema | undefined,
): LogProgressSchema['streams'][number]['reason'] {
  if (!schema || !givesChanges(schema, stream)) return 'not_followed';
  if (!stream.state) return 'not_copied';
  return stream.state.parked ? 'parked' : null;
}
