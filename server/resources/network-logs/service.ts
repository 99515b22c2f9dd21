import { gzipSync } from 'node:zlib';
import { and, eq } from 'drizzle-orm';
import { type RunRow, streamRuns } from '../../../db/schema/index.ts';
import { RETENTION_DAYS } from '../../connector-runtime/network-log/retention.ts';
import { ApiError, notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { findRun, type RunKey } from '../access/run.ts';
import type { ConnectorType } from '../../api/wire-types.ts';
import { bodyOf, concatenate, decompress, readMembers, segmentKeys } from './segments.ts';

const TYPE = 'application/x-ndjson';
const DAY_MS = 86_400_000;

/**
 * The network log of a run: the stored gzip members one after the other, as a file to download. Without
 * Content-Encoding, since clients that decode as they receive stop after the first member. No logs: one empty member.
 */
export async function runLogs(ctx: Ctx, input: RunKey & { connector_type?: ConnectorType }): Promise<Response> {
  const run = await findRun(ctx, input);
  noteReading(ctx, run);
  const keys = await segmentKeys(ctx, { connection_run_id: run.id, connector_type: input.connector_type });
  const { objects } = ctx.deps;
  const body = async function* () {
    let empty = true;
    for await (const chunk of concatenate(readMembers(objects, keys))) {
      empty = false;
      yield chunk;
    }
    if (empty) yield gzipSync('');
  };
  return new Response(bodyOf(body()), {
    headers: { 'content-type': TYPE, 'content-disposition': `attachment; filename="${run.id}.jsonl.gz"` },
  });
}

type StreamRunKey = RunKey & { connection_id: string; stream_run_id: string; connector_type: ConnectorType };

/**
 * One side's network log of a stream run, as exactly one gzip member under `Content-Encoding: gzip`.
 * @throws ApiError 404, with an object as `detail` when there is no log.
 */
export async function streamRunLogs(ctx: Ctx, input: StreamRunKey): Promise<Response> {
  const run = await findRun(ctx, input);
  const [stream] = await ctx.db
    .select()
    .from(streamRuns)
    .where(and(eq(streamRuns.id, input.stream_run_id), eq(streamRuns.connection_run_id, run.id)));
  if (!stream) throw notFound('Stream run');
  noteReading(ctx, run);
  const { connector_type } = input;
  const keys = await segmentKeys(ctx, { connection_run_id: run.id, stream_run_id: stream.id, connector_type });
  const members = readMembers(ctx.deps.objects, keys);
  const first = await members.next();
  if (first.done) throw noLogs(ctx, input, { run, started_at: stream.started_at, recorded: keys.length > 0 });
  const all = async function* () {
    yield first.value;
    yield* members;
  };
  const text = () => bodyOf(decompress(all()));
  const body = keys.length === 1 ? first.value : text().pipeThrough(new CompressionStream('gzip'));
  return new Response(body, {
    headers: {
      'content-type': TYPE,
      'content-encoding': 'gzip',
      'content-disposition': `attachment; filename="${stream.id}-${connector_type}.jsonl"`,
    },
  });
}

function noLogs(
  ctx: Ctx,
  input: StreamRunKey,
  facts: { run: RunRow; started_at: string | null; recorded: boolean },
): ApiError {
  const { run, started_at, recorded } = facts;
  const ended = Date.parse(run.finished_at ?? run.created_at);
  const old = ctx.deps.now().getTime() - ended > RETENTION_DAYS * DAY_MS;
  const reason = recorded || old ? 'expired' : started_at === null ? 'run_not_started' : 'not_recorded';
  const code = 'network_logs_not_found';
  const message = `There are no ${input.connector_type} network logs of this stream run`;
  const { connection_id, connection_run_id, stream_run_id, connector_type } = input;
  const detail = { code, message, connection_id, connection_run_id, stream_run_id, connector_type, reason };
  return new ApiError(404, code, message, { detail });
}

/** Every user of the account may read network logs, so each access is logged. */
function noteReading(ctx: Ctx, run: RunRow): void {
  const { user_id, account_id } = ctx.principal;
  ctx.deps.log.info({ user_id, account_id, connection_run_id: run.id }, 'network logs downloaded');
}
