import type { z } from 'zod';

/** Canonical types of a field. `type_native` beside it keeps the source's own type where both sides speak it. */
export const LOGICAL_TYPES = [
  'string',
  'integer',
  'number',
  'boolean',
  'date',
  'timestamp',
  'timestamp_tz',
  'time',
  'json',
  'array',
  'binary',
] as const;
export type LogicalType = (typeof LOGICAL_TYPES)[number];

export type SyncMode = 'full_refresh' | 'incremental';
export type DestinationSyncMode = 'append' | 'overwrite' | 'append_dedup' | 'update' | 'soft_delete';

export interface Field {
  /** Where the value stands in a record; one element for a column. */
  path: string[];
  type: LogicalType;
  /** The source's own type, e.g. `numeric(12,2)` of PostgreSQL; shown to users as `source_type`. */
  source_type: string | null;
  /** Whose type `source_type` is: a destination of the same dialect creates its column with it. */
  dialect: string | null;
  nullable: boolean;
  is_primary_key: boolean;
  is_cursor_candidate: boolean;
}

/** A stream as discovery finds it. Stored in the catalog, handed back to `read`. */
export interface StreamSchema {
  namespace: string | null;
  name: string;
  description: string | null;
  fields: Field[];
  supported_sync_modes: SyncMode[];
  source_defined_cursor: boolean;
  default_cursor_field: string[] | null;
  source_defined_primary_key: string[][] | null;
  /** A read can go on from a checkpoint in the middle. */
  is_resumable: boolean;
  /** A read can be limited to a window of days by the cursor. */
  supports_date_window: boolean;
  suggested: boolean;
}

/**
 * A value on its way: null, or PostgreSQL's text form of its logical type: `true`/`false`, digits for numbers,
 * ISO 8601 for dates and times (`2026-01-31 23:59:59.123456+00`), JSON text for json and array (PostgreSQL arrays
 * keep `{…}` when source_type says so), `\x…` hexadecimal for binary. Text loses nothing; decoded values would
 * (microseconds, big numbers).
 */
export type Cell = string | null;

/** Rows of a stream, cells in the order of `ReadRequest.columns`. About 5,000 rows or 1 MB, whichever comes first. */
export interface Batch {
  rows: Cell[][];
  /** Size of the cells, roughly, in bytes: what bounds memory. */
  bytes: number;
  /** When set: if everything up to the end of this batch is committed, a read may go on from here. */
  state?: StreamState;
}

/** Where a read goes on; the source's own, but for `cursor`, which users see and may set. */
export interface StreamState {
  cursor: string | null;
  [key: string]: unknown;
}

export type Masking = 'none' | 'hash_sha256' | 'hash_sha256_salted' | 'redact' | 'encrypt';

export interface Filter {
  field: string;
  operator:
    | 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte' | 'in' | 'not_in'
    | 'contains' | 'starts_with' | 'is_null' | 'is_not_null' | 'between';
  value: unknown;
}

/** A column that the engine asks for. `masking` is set only when the source declared that it can do it itself. */
export interface ReadColumn {
  field: Field;
  masking: Masking;
}

export interface ReadRequest {
  stream: StreamSchema;
  columns: ReadColumn[];
  /** Only filters that the source declared in `pushdown.filters`. */
  filters: Filter[];
  sync_mode: SyncMode;
  cursor_field: string[] | null;
  primary_key: string[][];
  /** Go on from here; null: from the start. */
  state: StreamState | null;
  /** Half-open window `[start, end)` on the cursor, ISO dates in UTC; null: no limit on that side. */
  window: { start: string | null; end: string | null } | null;
}

/** Bytes that can go from a source to a destination untouched. */
export type ByteFormat = 'pgcopy-binary' | 'pgcopy-text';

export interface ByteStream {
  format: ByteFormat;
  chunks: AsyncIterable<Uint8Array>;
  /** Exact only after the end; may grow while reading where the source can tell. */
  rows(): number;
}

/** One request as the network log keeps it, before redaction. Bodies are cut by the recorder. */
export interface RequestRecord {
  method: string;
  url: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: string | null;
  body_bytes?: number;
}
export interface ResponseRecord {
  status: number | null;
  headers?: Record<string, string>;
  body?: string | null;
  body_bytes?: number;
}
export interface RequestTimings {
  dns?: number;
  connect?: number;
  tls?: number;
  wait?: number;
  receive?: number;
}

/** Ends the entry that `Recorder.start` began. Exactly one of them is called, once. */
export interface PendingRequest {
  done(response: ResponseRecord, timings?: RequestTimings): void;
  failed(code: string, message: string): void;
}

/** Records what goes over the network. A connector calls it for all that is not `ctx.fetch`. */
export interface Recorder {
  start(request: RequestRecord): PendingRequest;
}

export interface ConnectorLog {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
}

/** All that a connector is handed. There is no other way out to the network, the disk or the clock. */
export interface ConnectorContext<Config> {
  config: Config;
  /** Recording fetch: logs and redacts every attempt. */
  fetch: typeof globalThis.fetch;
  recorder: Recorder;
  log: ConnectorLog;
  now(): Date;
  /** Aborted on a stop, a lost lease or a timeout: let go of everything at once. */
  signal: AbortSignal;
  /** The only folder of this machine that a connector may touch (`DATA_DIR/files`). */
  filesRoot: string;
  /** A warning that the run shows to its user. */
  warn(code: string, message: string): void;
  /** Tells users that the stream waits for quota; call before sleeping. */
  rateLimited(until: Date): void;
}

export interface CheckResult {
  checks: { title: string; status: 'passed' | 'failed' | 'skipped'; message: string | null }[];
}

export interface TargetColumn {
  name: string;
  type: LogicalType;
  source_type: string | null;
  dialect: string | null;
  nullable: boolean;
}

/** What a destination is to write one stream into. */
export interface WriteTarget {
  schema: string | null;
  table: string;
  columns: TargetColumn[];
  /** Names out of `columns`. */
  primary_key: string[];
  /** Name out of `columns`: with append_dedup the row with the highest cursor wins. */
  cursor_column: string | null;
  mode: DestinationSyncMode;
  /** Identity of the checkpoint that the destination keeps. */
  connection_id: string;
  stream_id: string;
  connection_run_id: string;
  stream_run_id: string;
  /** Grows with every claim: a commit with a lower one than the destination has seen is refused (FencedError). */
  fence: number;
  /**
   * The control plane's `state_version`: a destination that has a higher one tells its own state. Each commit stores
   * the higher of the two plus the number of commits since the writer was opened.
   */
  state_version: number;
}

/** What the destination committed for this stream earlier. */
export interface CommittedState {
  state: StreamState | null;
  state_version: number;
  /** Set when the commit was made by the very stream run of the target. */
  same_stream_run: boolean;
  /** That stream run's last commit was its final one: nothing is left to do. */
  finished: boolean;
  /** Rows and bytes that this stream run has committed. */
  counts: WriteCounts;
}

/** Totals of this stream run as committed so far, earlier attempts included. */
export interface WriteCounts {
  rows_loaded: number;
  rows_updated: number;
  rows_deleted: number;
  bytes_loaded: number;
}

/**
 * Writes one stream. Order of calls: (`write`* `checkpoint`?)* `finish`, or one `pipe` and `finish`; `abort` at any
 * time instead, also after an error of another call, and then nothing that is not yet committed may stay.
 */
export interface Writer {
  /** Byte formats that `pipe` takes into this very table; absent: rows only. */
  byteFormats?: ByteFormat[];
  /** What this destination had committed when the writer was opened; null: nothing. */
  committed: CommittedState | null;
  write(batch: Batch): Promise<void>;
  /** Takes a byte stream whole. Only with a format from `byteFormats`. */
  pipe?(stream: ByteStream): Promise<void>;
  /** Makes rows and state durable in one transaction of the destination, visible to its readers. */
  checkpoint(state: StreamState): Promise<WriteCounts>;
  /** The last commit: swaps or merges into place and records the state and that the stream run is done. */
  finish(state: StreamState | null): Promise<WriteCounts>;
  abort(): Promise<void>;
}

export interface ConnectorDescription {
  display_name: string;
  description: string;
  category: 'database' | 'warehouse' | 'file' | 'saas' | 'ads' | 'crm' | 'chat' | 'http';
  version: string;
  release_stage: 'alpha' | 'beta' | 'generally_available' | 'deprecated';
  auth_methods: ('none' | 'api_key' | 'basic' | 'oauth2' | 'key_pair' | 'ssh_key' | 'service_account')[];
  documentation_url?: string;
  /** Not shown in the catalogue: for tests. */
  hidden?: boolean;
}

interface ConnectorBase<Config> extends ConnectorDescription {
  name: string;
  /** Settings. Each field carries `.meta({ label, … })`, secrets `.meta({ secret: true })`: see parameters.ts. */
  config: z.ZodType<Config> & z.ZodObject;
  /** A real test against the other side. Throws a ConnectorError, or answers with the single checks. */
  check(ctx: ConnectorContext<Config>): Promise<CheckResult>;
  /** Live values of a parameter: value to label. */
  possibleValues?: Record<string, (ctx: ConnectorContext<Config>) => Promise<Record<string, string>>>;
}

export interface SourceConnector<Config = unknown> extends ConnectorBase<Config> {
  type: 'source';
  supported_sync_modes: SyncMode[];
  /** What `read` and `copy` do themselves; the engine does the rest row by row. */
  pushdown: { masking: Masking[]; filters: boolean };
  discover(ctx: ConnectorContext<Config>): Promise<StreamSchema[]>;
  read(ctx: ConnectorContext<Config>, request: ReadRequest): AsyncIterable<Batch>;
  /** Byte formats that `copy` can give for these columns, best first; empty: rows only. */
  byteFormats?(request: ReadRequest): ByteFormat[];
  copy?(ctx: ConnectorContext<Config>, request: ReadRequest, format: ByteFormat): Promise<ByteStream>;
  /** Rows that a full read would give, roughly, without reading them. */
  estimate?(ctx: ConnectorContext<Config>, request: ReadRequest): Promise<number | null>;
}

export interface DestinationConnector<Config = unknown> extends ConnectorBase<Config> {
  type: 'destination';
  supported_destination_sync_modes: DestinationSyncMode[];
  open(ctx: ConnectorContext<Config>, target: WriteTarget): Promise<Writer>;
  capabilities?: { chat?: boolean };
}

// oxlint-disable-next-line typescript/no-explicit-any -- the registry holds connectors of every configuration
export type AnySource = SourceConnector<any>;
// oxlint-disable-next-line typescript/no-explicit-any -- as above
export type AnyDestination = DestinationConnector<any>;
export type AnyConnector = AnySource | AnyDestination;

/** Gives `check`, `discover` and `read` the type of the settings. */
export const defineSource = <Config>(connector: SourceConnector<Config>) => connector;
export const defineDestination = <Config>(connector: DestinationConnector<Config>) => connector;
