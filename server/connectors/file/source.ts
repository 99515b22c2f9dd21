import {
  type Batch,
  defineSource,
  type Field,
  type ReadRequest,
  type StreamSchema,
  type StreamState,
} from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { timestampText } from '../cells/timestamp-text.ts';
import { copyFiles, fileByteFormats } from '../kits/files/copy-files.ts';
import type { FileColumn } from '../kits/files/formats/format.ts';
import { ReadingDigester } from '../kits/digest/reading-digester.ts';
import { columnsOf, readRows, sampleColumns } from '../kits/files/read-files.ts';
import { FileSourceConfig, type SourceContext } from '../kits/files/settings/files.ts';
import { findSourceFiles, placeName, requireSourceFiles, sourceCheckSteps } from '../kits/files/stores.ts';
import { checkInOrder } from '../kits/files/stores/check-steps.ts';
import { type FoundFile, UNKNOWN_TIME } from '../kits/files/stores/store.ts';
import { filesAfter, stateAfterFile, stateAfterRows } from './source-state.ts';

export const fileSource = defineSource<FileSourceConfig>({
  type: 'source',
  name: 'file',
  display_name: 'Files',
  description:
    'CSV, JSON Lines, Parquet, Avro, Excel, XML and fixed-width files in the files folder of this service, over HTTP(S), SFTP or FTP(S), or in S3, Azure or Google Cloud',
  category: 'file',
  version: '1.0.0',
  release_stage: 'generally_available',
  auth_methods: ['none', 'basic', 'api_key'],
  supported_sync_modes: ['full_refresh', 'incremental'],
  pushdown: { masking: [], filters: false },
  config: FileSourceConfig,
  async check(ctx) {
    let files: FoundFile[] = [];
    const found = async () => {
      files = await requireSourceFiles(ctx);
      return files.length === 1 ? '1 file' : `${files.length} files`;
    };
    const format = async () => {
      const columns = await columnsOf(ctx, files[0] as FoundFile);
      return `${columns.length} columns`;
    };
    return {
      checks: await checkInOrder([...sourceCheckSteps(ctx), ['Files', '', found], ['Format', '', format]]),
    };
  },
  discover: async (ctx) => [await discoverStream(ctx)],
  describe,
  read,
  digest: async (ctx, comparison) => ReadingDigester.ofSource(comparison, (request) => read(ctx, request)),
  byteFormats: fileByteFormats,
  copy: async (ctx, request, wanted) => copyFiles(ctx, await requireSourceFiles(ctx), { request, wanted }),
});

/** Adds columns that the next files to be read have. Without a state nothing is added: discovery has just run. */
async function describe(ctx: SourceContext, stream: StreamSchema, state: StreamState | null): Promise<StreamSchema> {
  if (!state) return stream;
  const files = filesAfter(await findSourceFiles(ctx), state).map(({ file }) => file);
  const known = stream.fields.map(({ path, ...field }) => ({ name: path.join('.'), ...field }));
  const names = new Set(known.map(({ name }) => name));
  // The read reports a broken file, after it has loaded the files before it.
  const columns = await sampleColumns(ctx, files, { known, broken: () => [] });
  ctx.signal.throwIfAborted();
  const added = [...columns.values()].filter(({ name }) => !names.has(name));
  return { ...stream, fields: [...stream.fields, ...added.map((column) => fieldOf(column, ctx.config.primary_key))] };
}

async function discoverStream(ctx: SourceContext): Promise<StreamSchema> {
  const { config } = ctx;
  const files = await requireSourceFiles(ctx);
  const columns = await sampleColumns(ctx, files);
  const missing = config.primary_key.find((name) => !columns.has(name));
  if (missing !== undefined) {
    throw new ConfigurationError('primary_key_missing', `No file has the primary key column "${missing}"`);
  }
  const fields = [...columns.values()].map((column) => fieldOf(column, config.primary_key));
  return {
    namespace: null,
    name: config.stream_name ?? nameOf(placeName(config)),
    description: files.length === 1 ? (files[0] as FoundFile).name : `${files.length} files: ${placeName(config)}`,
    fields: config.include_file_columns ? [...fields, ...FILE_FIELDS] : fields,
    supported_sync_modes: ['full_refresh', 'incremental'],
    source_defined_cursor: true,
    default_cursor_field: config.include_file_columns ? ['_file_modified_at'] : null,
    source_defined_primary_key: config.primary_key.length > 0 ? config.primary_key.map((name) => [name]) : null,
    is_resumable: true,
    supports_date_window: false,
    suggested: true,
  };
}

const fieldOf = ({ name, ...column }: FileColumn, primaryKey: string[]): Field => ({
  path: [name],
  ...column,
  nullable: column.nullable && !primaryKey.includes(name),
  is_primary_key: primaryKey.includes(name),
  is_cursor_candidate: false,
});

const FILE_FIELDS: Field[] = (
  [
    ['_file_name', 'string'],
    ['_file_modified_at', 'timestamp_tz'],
  ] as const
).map(([name, type]) => ({
  path: [name],
  type,
  source_type: null,
  dialect: null,
  nullable: false,
  is_primary_key: false,
  is_cursor_candidate: name === '_file_modified_at',
}));

/** `exports/orders-*.csv.gz` becomes `orders`. */
function nameOf(path: string): string {
  const segments = path
    .split('/')
    .map((segment) =>
      segment.replace(/(\.(csv|tsv|jsonl|ndjson|parquet|xlsx|xlsm|avro|fwf|xml))?(\.(gz|zst|zip))?$/i, ''),
    );
  const plain = segments.map((segment) => segment.replace(/[*?[{].*$/, '').replace(/[-_. ]+$/, ''));
  return plain.findLast((segment) => segment !== '') ?? 'files';
}

async function* read(ctx: SourceContext, request: ReadRequest): AsyncGenerator<Batch> {
  ctx.signal.throwIfAborted();
  const incremental = request.sync_mode === 'incremental';
  const found = await (incremental ? findSourceFiles(ctx) : requireSourceFiles(ctx));
  const timeless = incremental && found.find((file) => file.remote && file.modified === UNKNOWN_TIME);
  if (timeless)
    throw new ConfigurationError(
      'no_modified_time',
      `${timeless.name}: the server does not report a modification time. Use full refresh instead`,
    );
  const names = request.columns.map(({ field }) => field.path.join('.'));
  const own = names.map((name) => ctx.config.include_file_columns && FILE_FIELDS.some(({ path }) => path[0] === name));
  const columns = request.columns.flatMap(({ field }, at) =>
    own[at] ? [] : [{ name: names[at] as string, ...field }],
  );
  const known = new Set(request.stream.fields.map(({ path }) => path.join('.')));
  let state: StreamState = request.state ?? { cursor: null };
  const files = filesAfter(found, request.state);
  for (const [at, { file, skip }] of files.entries()) {
    let rows = skip;
    const about = [file.name, timestampText(file.modified)];
    const later = files.slice(at + 1).map((next) => next.file);
    for await (const batch of readRows(ctx, file, { columns, known, skip, later })) {
      ctx.signal.throwIfAborted();
      rows += batch.rows.length;
      state = stateAfterRows(state, file, rows);
      const full = own.includes(true) ? batch.rows.map((row) => withFileCells(row, { names, own, about })) : batch.rows;
      yield { rows: full, bytes: batch.bytes, state };
    }
    state = stateAfterFile(state, file);
    yield { rows: [], bytes: 0, state };
  }
}

function withFileCells(row: (string | null)[], at: { names: string[]; own: boolean[]; about: string[] }) {
  let next = 0;
  return at.names.map((name, index) => {
    if (!at.own[index]) return row[next++] ?? null;
    return (name === '_file_name' ? at.about[0] : at.about[1]) ?? null;
  });
}
