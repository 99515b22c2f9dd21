import { and, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import { catalogStreams, type ConnectionRow, connectionStreams, streamRuns } from '../../../db/schema/index.ts';
import { isLiveRun } from '../../pipeline/run-states.ts';
import { badRequest } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { lockConnection } from '../access/connection.ts';
import { startRunOf } from '../access/start-run.ts';
import { rerunChunk } from './launch.ts';
import { findRun } from '../access/run.ts';

/**
 * Starts a new run with the streams of one that has ended, of a custom run with its days; answers with the new run's id.
 * @throws ApiError 400 `run_not_terminal`, `stream_removed`, and those of a start.
 */
export async function rerunRun(ctx: Ctx, input: { connection_run_id: string }): Promise<string> {
  const run = await findRun(ctx, input);
  const connection = await lockConnection(ctx, run.connection_id);
  if (isLiveRun(run.status)) {
    throw badRequest('run_not_terminal', 'The run has not ended', { connection_run_id: run.id, status: run.status });
  }
  const streams = await streamsOf(ctx, connection, run.id);
  if (run.custom_run_plan_id !== null) return rerunChunk(ctx, connection, { run, streams });
  return startRunOf(ctx, connection, { trigger_type: 'rerun', rerun_of_run_id: run.id, streams });
}

async function streamsOf(ctx: Ctx, connection: ConnectionRow, connection_run_id: string) {
  const moved = ctx.db
    .select({ id: streamRuns.stream_id })
    .from(streamRuns)
    .where(eq(streamRuns.connection_run_id, connection_run_id));
  const streams = await ctx.db
    .select()
    .from(connectionStreams)
    .where(inArray(connectionStreams.id, moved))
    .orderBy(sql`coalesce(${connectionStreams.namespace}, '')`, connectionStreams.name);
  const gone = await goneFromSource(ctx, connection);
  const removed = streams.filter((stream) => !stream.selected || gone.has(keyOf(stream)));
  if (removed.length === 0) return streams;
  throw badRequest('stream_removed', `Streams of that run are no longer there: ${removed.map(nameOf).join(', ')}`, {
    stream_ids: removed.map((stream) => stream.id),
  });
}

const nameOf = (stream: { name: string }) => stream.name;
const keyOf = (stream: { namespace: string | null; name: string }) => JSON.stringify([stream.namespace, stream.name]);

async function goneFromSource(ctx: Ctx, connection: ConnectionRow): Promise<Set<string>> {
  const rows = await ctx.db
    .select({ namespace: catalogStreams.namespace, name: catalogStreams.name })
    .from(catalogStreams)
    .where(and(eq(catalogStreams.account_connector_id, connection.source_id), isNotNull(catalogStreams.removed_at)));
  return new Set(rows.map(keyOf));
}
