import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { type Batch, type Cell, type ConnectorContext, defineSource, type ReadRequest } from '../contract/connector.ts';
import { SchemaChangedError } from '../contract/errors.ts';
import { dateText } from '../cells/timestamp-text.ts';
import { rowSeed } from './random.ts';
import { DEMO_STREAMS, type DemoRow, type DemoStream, demoSchema } from './streams.ts';
import { type Span, rowRange, spanOf, timeOfRow } from './row-range.ts';

const BATCH_ROWS = 5_000;
const BATCH_BYTES = 1_000_000;

export const DemoConfig = z
  .object({
    rows: z.int().min(1).max(100_000_000).default(10_000).meta({
      label: 'Rows',
      description: 'Number of rows in the stream events; orders has half as many, users a tenth',
    }),
    seed: z.int().min(0).max(2_147_483_647).default(1).meta({
      label: 'Seed',
      description: 'The same seed gives the same rows',
    }),
    start_date: z.iso.date().default('2025-01-01').meta({ label: 'Start date', description: 'Date of the first rows' }),
    end_date: z.iso.date().optional().meta({
      label: 'End date',
      description:
        'The rows are spread evenly from the start date up to this date. Default: today, so that they change every day',
    }),
    rows_per_second: z.int().min(1).max(10_000_000).optional().meta({
      label: 'Rows per second',
      description: 'Limits the speed of each stream, so that a run can be watched',
      group: 'advanced',
    }),
  })
  .refine(({ start_date, end_date }) => end_date === undefined || start_date < end_date, {
    path: ['end_date'],
    message: 'The end date must be after the start date',
  });
export type DemoConfig = z.infer<typeof DemoConfig>;
type Context = ConnectorContext<DemoConfig>;

export const demoSource = defineSource<DemoConfig>({
  type: 'source',
  name: 'demo',
  display_name: 'Demo data',
  description: 'Users, orders and events of a fictitious shop. The same seed gives the same rows',
  category: 'saas',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['none'],
  offline: true,
  supported_sync_modes: ['full_refresh', 'incremental'],
  pushdown: { masking: [], filters: false },
  config: DemoConfig,
  async check(ctx) {
    const { start, step, rows } = spanFor(ctx, DEMO_STREAMS.at(-1) as DemoStream, null);
    const days = Math.round((step * rows) / 86_400_000_000);
    const message = `${rows} events over ${days} days from ${dateText(start / 86_400_000_000)}`;
    return { checks: [{ title: 'Settings', status: 'passed', message }] };
  },
  discover: async () => DEMO_STREAMS.map(demoSchema),
  estimate: async (ctx, request) => {
    const { from, to } = rowRange(request, spanFor(ctx, streamOf(request), request.state));
    return to - from;
  },
  read,
});

async function* read(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  const stream = streamOf(request);
  const span = spanFor(ctx, stream, request.state);
  const { from, to } = rowRange(request, span);
  const cells = request.columns.map(({ field }) => cellMaker(stream, field.path));
  const users = countOf(ctx, DEMO_STREAMS[0] as DemoStream);
  const pace = ctx.config.rows_per_second;
  const limit = pace === undefined ? BATCH_ROWS : Math.max(1, Math.min(BATCH_ROWS, Math.floor(pace / 4)));
  for (let index = from; index < to; ) {
    ctx.signal.throwIfAborted();
    const rows: Cell[][] = [];
    let bytes = 0;
    for (; index < to && rows.length < limit && bytes < BATCH_BYTES; index++) {
      const row = { index, seed: rowSeed(ctx.config.seed, stream.salt, index), micros: timeOfRow(span, index), users };
      const values = cells.map((cell) => cell(row));
      for (const value of values) bytes += value === null ? 0 : value.length;
      rows.push(values);
    }
    if (pace !== undefined) await sleep((rows.length / pace) * 1000, undefined, { signal: ctx.signal });
    yield { rows, bytes, state: stateAfter(stream, span, index) };
  }
}

/** The state keeps `end_date`: the rows must not move if a read resumes after midnight. */
function stateAfter(stream: DemoStream, span: Span, next: number) {
  const micros = timeOfRow(span, next - 1);
  const last: DemoRow = { index: next - 1, seed: 0, micros, users: 1 };
  return { cursor: stream.columns[stream.cursor]?.cell(last) ?? null, next_row: next, end_date: span.end_date };
}

function spanFor(ctx: Context, stream: DemoStream, state: ReadRequest['state']): Span {
  const today = dateText(Math.floor(ctx.now().getTime() / 86_400_000));
  const rows = countOf(ctx, stream);
  const unfinished = typeof state?.next_row === 'number' && state.next_row < rows;
  const kept = unfinished && typeof state?.end_date === 'string' ? state.end_date : null;
  return spanOf({
    seed: ctx.config.seed,
    rows,
    start_date: ctx.config.start_date,
    end_date: ctx.config.end_date ?? kept ?? today,
  });
}

const countOf = (ctx: Context, stream: DemoStream) => Math.max(1, Math.ceil(ctx.config.rows * stream.share));

function streamOf(request: ReadRequest): DemoStream {
  const stream = DEMO_STREAMS.find(({ name }) => name === request.stream.name);
  if (!stream) throw new SchemaChangedError('stream_missing', `The demo data has no stream "${request.stream.name}"`);
  return stream;
}

function cellMaker(stream: DemoStream, path: string[]) {
  const column = path.length === 1 ? stream.columns[path[0] as string] : undefined;
  if (!column) throw new SchemaChangedError('column_missing', `${stream.name} has no column "${path.join('.')}"`);
  return column.cell;
}
