import { z } from 'zod';
import {
  type Batch,
  type Cell,
  type ConnectorContext,
  defineSource,
  type Field,
  type ReadRequest,
} from '../contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../contract/errors.ts';
import { microsOf, timestampText } from '../cells/timestamp-text.ts';
import { beginAttempt, checkSample, delayBatch, faultSettings, misbehave } from './faults.ts';

export const SampleSourceConfig = z.object({
  rows: z
    .int()
    .min(0)
    .max(100_000_000)
    .default(100)
    .meta({ label: 'Rows', directs_secrets: false, description: 'Number of rows per stream' }),
  streams: z.int().min(1).max(500).default(1).meta({ label: 'Streams', directs_secrets: false }),
  batch_rows: z.int().min(1).max(100_000).default(10).meta({ label: 'Rows per batch', directs_secrets: false }),
  value_bytes: z
    .int()
    .min(0)
    .max(10_000_000)
    .default(0)
    .meta({ label: 'Padding per row (bytes)', directs_secrets: false }),
  primary_key: z.boolean().default(true).meta({ label: 'Has a primary key', directs_secrets: false }),
  cursor: z.boolean().default(true).meta({
    label: 'Has a cursor',
    directs_secrets: false,
    description: 'Without a cursor only full refresh is possible, and reads cannot resume',
  }),
  fault_at_row: z.int().min(0).default(0).meta({
    label: 'Fault at row',
    directs_secrets: false,
    description: 'The fault occurs after this many rows of the stream have been read',
    group: 'advanced',
  }),
  fault_stream: z
    .string()
    .optional()
    .meta({ label: 'Faulty stream', directs_secrets: false, description: 'Default: all streams', group: 'advanced' }),
  record_requests: z.boolean().default(false).meta({
    label: 'Record requests',
    directs_secrets: false,
    description: 'Adds one request per batch to the network log, with the token in every place that has to be redacted',
    group: 'advanced',
  }),
  ...faultSettings,
});
export type SampleSourceConfig = z.infer<typeof SampleSourceConfig>;
type Context = ConnectorContext<SampleSourceConfig>;

const START = microsOf('2025-01-01');
const MINUTE = 60_000_000;

/** A cell depends only on the position of its row, so every read returns the same rows. */
const COLUMNS: Record<string, { type: Field['type']; cell(index: number, config: SampleSourceConfig): Cell }> = {
  id: { type: 'integer', cell: (index) => String(index + 1) },
  name: { type: 'string', cell: (index, config) => `row ${index + 1} ☃${'x'.repeat(config.value_bytes)}` },
  amount: { type: 'number', cell: (index) => `${index}.${String(index % 100).padStart(2, '0')}` },
  flag: { type: 'boolean', cell: (index) => (index % 2 ? 'true' : 'false') },
  note: { type: 'string', cell: (index) => (index % 3 === 0 ? null : index % 3 === 1 ? '' : `note ${index}`) },
  data: { type: 'json', cell: (index) => `{"index": ${index}, "big": 12345678901234567890}` },
  updated_at: { type: 'timestamp_tz', cell: (index) => timestampText(START + index * MINUTE) },
};

export const sampleSource = defineSource<SampleSourceConfig>({
  type: 'source',
  name: 'sample',
  display_name: 'Sample',
  description: 'Generates rows and fails on request, for tests',
  category: 'saas',
  version: '1.0.0',
  release_stage: 'alpha',
  auth_methods: ['none'],
  hidden: true,
  supported_sync_modes: ['full_refresh', 'incremental'],
  pushdown: { masking: [], filters: false },
  config: SampleSourceConfig,
  check: checkSample,
  discover: async ({ config }) => Array.from({ length: config.streams }, (_, n) => schemaOf(`stream_${n + 1}`, config)),
  estimate: async ({ config }) => config.rows,
  read,
});

function schemaOf(name: string, config: SampleSourceConfig) {
  const fields = Object.entries(COLUMNS).map(([column, { type }]) => ({
    path: [column],
    type,
    source_type: null,
    dialect: null,
    nullable: column === 'note',
    is_primary_key: config.primary_key && column === 'id',
    is_cursor_candidate: config.cursor && column === 'updated_at',
  }));
  return {
    namespace: null,
    name,
    description: null,
    fields,
    supported_sync_modes: config.cursor ? ['full_refresh' as const, 'incremental' as const] : ['full_refresh' as const],
    source_defined_cursor: config.cursor,
    default_cursor_field: config.cursor ? ['updated_at'] : null,
    source_defined_primary_key: config.primary_key ? [['id']] : null,
    is_resumable: config.cursor,
    supports_date_window: config.cursor,
    suggested: true,
  };
}

async function* read(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  const { config, signal } = ctx;
  const cells = request.columns.map(({ field }) => cellMaker(field.path.join('.')));
  const named = config.fault_stream === undefined || config.fault_stream === request.stream.name;
  const faulty = named && (await beginAttempt(ctx, request.stream.name));
  const { window, state } = request;
  const end = Math.min(config.rows, window?.end ? rowFrom(microsAt(window.end)) : config.rows);
  const start = window?.start ? rowFrom(microsAt(window.start)) : 0;
  let index = state?.cursor ? Math.max(start, rowFrom(microsAt(state.cursor) + 1)) : start;
  while (true) {
    signal.throwIfAborted();
    if (faulty && index >= config.fault_at_row) await misbehave(ctx);
    if (index >= end) return;
    await delayBatch(ctx);
    const stop = Math.min(
      end,
      index + config.batch_rows,
      faulty && config.fault_at_row > index ? config.fault_at_row : end,
    );
    const rows: Cell[][] = [];
    for (; index < stop; index++) rows.push(cells.map((cell) => cell(index, config)));
    if (config.record_requests) recordRequest(ctx, request.stream.name, rows.length);
    const bytes = rows.reduce((sum, row) => sum + row.reduce((size, cell) => size + (cell?.length ?? 0), 0), 0);
    const cursor = COLUMNS.updated_at?.cell(index - 1, config) ?? null;
    yield { rows, bytes, ...(config.cursor && { state: { cursor } }) };
  }
}

/** Index of the first row at or after this time. */
const rowFrom = (micros: number) => Math.max(0, Math.ceil((micros - START) / MINUTE));

function microsAt(text: string): number {
  const micros = microsOf(text);
  if (Number.isNaN(micros)) throw new ConfigurationError('invalid_cursor', `"${text}" is not a date or timestamp`);
  return micros;
}

function cellMaker(name: string) {
  const column = COLUMNS[name];
  if (!column) throw new SchemaChangedError('column_missing', `The sample connector has no column "${name}"`);
  return column.cell;
}

function recordRequest(ctx: Context, stream: string, rows: number): void {
  const token = ctx.config.token ?? 'no-token';
  const url = `https://sample.invalid/${stream}?api_key=${encodeURIComponent(token)}`;
  const headers = { authorization: `Bearer ${token}`, 'x-custom': token };
  const body = JSON.stringify({ password: token, nested: { note: `the token is ${token}` } });
  const pending = ctx.recorder.start({ method: 'POST', url, query: { api_key: token }, headers, body });
  pending.done({
    status: 200,
    headers: { 'set-cookie': `session=${token}` },
    body: `{"rows":${rows},"echo":"${token}"}`,
  });
}
