import { and, eq } from 'drizzle-orm';
import { z } from 'zod';
import { connectionRuns, type StoredLogLine, streamRuns } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { PageQuery } from '../../api/wire-types.ts';
import { MAX_LOG_LINES } from '../../runs/log/append-lines.ts';
import { findRun, type RunKey } from '../access/run.ts';
import { linesOfRun } from './run-lines.ts';
import { selectRuns } from './query.ts';
import { LEVELS, RunLogLine } from './log-line.ts';

export const RunLogQuery = PageQuery.extend({
  level: z.enum(LEVELS).default('info').meta({ description: 'The lowest level: `warning` includes errors.' }),
  stream_run_id: z.guid().optional().meta({ description: 'Only lines of this stream run.' }),
});
type RunLogQuery = z.infer<typeof RunLogQuery>;

/** The log of a run, oldest line first, with the header `X-Total-Count`. */
export async function listRunLog(ctx: Ctx, input: RunKey & RunLogQuery): Promise<RunLogLine[]> {
  const { id } = await findRun(ctx, input);
  const [record] = await selectRuns(ctx.db, eq(connectionRuns.id, id), { offset: 0 });
  const { stream_run_id, level, offset, limit } = input;
  const streams = await ctx.db
    .select({
      id: streamRuns.id,
      stream_name: streamRuns.stream_name,
      namespace: streamRuns.namespace,
      log: streamRuns.log,
    })
    .from(streamRuns)
    .where(
      and(
        eq(streamRuns.connection_run_id, id),
        stream_run_id === undefined ? undefined : eq(streamRuns.id, stream_run_id),
      ),
    )
    .orderBy(streamRuns.id);
  const own = record && stream_run_id === undefined ? linesOfRun(record) : [];
  const all = inOrder([...beforeStreams(own, streams), ...streams.flatMap(linesOfStream)]);
  const lines = all.filter((line) => LEVELS.indexOf(line.level) >= LEVELS.indexOf(level));
  ctx.setHeader('X-Total-Count', String(lines.length));
  return lines.slice(offset, limit === undefined ? undefined : offset + limit);
}

type StreamLog = { id: string; stream_name: string; namespace: string | null; log: StoredLogLine[] };

/** The clocks of machines differ: no line of a stream is before the one that was stored before it. */
function linesOfStream({ id, log, ...stream }: StreamLog): RunLogLine[] {
  let latest = '';
  const lines = log.map((line, at): RunLogLine => {
    latest = line.at > latest ? line.at : latest;
    return { ...stream, ...line, at: latest, id: `${id}-${at}`, stream_run_id: id };
  });
  if (log.length < MAX_LOG_LINES) return lines;
  const message = `${stream.stream_name} has more lines than are kept`;
  const last = lines.at(-1)!;
  return [...lines, { ...last, id: `${id}-full`, level: 'warning', code: 'log_full', message }];
}

/** A claim is recorded just before the start of the run, which it causes. */
function beforeStreams(lines: RunLogLine[], streams: StreamLog[]): RunLogLine[] {
  const claims = streams.flatMap(({ log }) => log.slice(0, 1).map(({ at }) => at));
  const first = claims.toSorted()[0];
  return lines.map((line) => (line.code === 'started' && first && first < line.at ? { ...line, at: first } : line));
}

/** Sorting is stable, so that lines of one moment stay in the order in which they were stored. */
const inOrder = (lines: RunLogLine[]) => lines.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
