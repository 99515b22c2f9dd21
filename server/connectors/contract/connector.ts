import { LOGICAL_TYPES, type LogicalType } from '../../../db/schema/logical-types.ts';
import type { z } from 'zod';
import type { ChatChannel, ChatMessage } from './chat.ts';
import type { Connect } from './connect.ts';
import type { Masking, ReadRequest } from './read-request.ts';
import type { Recorder } from './recording.ts';
import type { RowChange } from './changes.ts';
import type { Writer, WriteTarget } from './writer.ts';

export type { PendingRequest, Recorder, RequestRecord, RequestTimings, ResponseRecord } from './recording.ts';
export type { Filter, Masking, ReadColumn, ReadRequest } from './read-request.ts';
export type { CommittedState, TargetColumn, WriteCounts, Writer, WriteTarget } from './writer.ts';
export type { RowChange } from './changes.ts';

export { LOGICAL_TYPES, type LogicalType };

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
  /** The query that the stream is, instead of a table. */
  dataset_sql?: string;
  /**
   * An incremental read follows a log of changes, of which the source keeps for each reader what it has not
   * acknowledged: such a read gets a `reader_id`, and `release` is called when there will be no more of them. Masks
   * and filters are the engine's, whatever `pushdown` says: it knows a row that is filtered from one that is gone.
   */
  change_log?: boolean;
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
  /** What happened to each row, one entry a row. Absent: every row is there now as it stands. */
  changes?: readonly RowChange[];
  /** When set: if everything up to the end of this batch is committed, a read may go on from here. */
  state?: StreamState;
}

/** Where a read goes on; the source's own, but for `cursor`, which users see and may set. */
export interface StreamState {
  cursor: string | null;
  [key: string]: unknown;
}

/** Bytes that can go from a source to a destination untouched. */
export type ByteFormat = 'pgcopy-binary' | 'pgcopy-text';

export interface ByteStream {
  format: ByteFormat;
  chunks: AsyncIterable<Uint8Array>;
  /** Exact only after the end; may grow while reading where the source can tell. With `state` exact after each chunk. */
  rows(): number;
  /**
   * Of an incremental read, whose chunks are whole rows: if everything up to the end of the last chunk is committed, a
   * read may go on from here. Null: not yet.
   */
  state?(): StreamState | null;
}

export interface ConnectorLog {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
}

/** A secret where it is stored. */
export interface StoredSecret {
  /** What stands there now, whoever replaced it; null: there is none like it, or the settings are others by now. */
  current: string | null;
  /** False: it could not be put in the place of the one that was used. */
  replace(used: string, replacement: string): Promise<boolean>;
}

/** All that a connector is handed. There is no other way out to the network, the disk or the clock. */
export interface ConnectorContext<Config> {
  config: Config;
  /** Recording fetch: logs and redacts every attempt. */
  fetch: typeof globalThis.fetch;
  /** What `fetch` is for HTTP, for all that is not: checked, tunnelled where the user set that up. */
  connect: Connect;
  recorder: Recorder;
  log: ConnectorLog;
  now(): Date;
  /** Aborted on a stop, a lost lease or a timeout: let go of everything at once. */
  signal: AbortSignal;
  /** The only folder of this machine that a connector may touch (`DATA_DIR/files`). */
  filesRoot: string;
  /** A warning that the run shows to its user. */
  warn(code: string, message: string): void;
  /** Queries that users made streams of; only for sources that say they take them. */
  datasets?: readonly Dataset[];
  /**
   * Works with a secret that its service may replace, e.g. a refresh token, alone among all processes. Absent: nothing
   * can be stored.
   * @param given the secret as the settings had it when they were opened
   */
  rotateSecret?<Result>(given: string, work: (stored: StoredSecret) => Promise<Result>): Promise<Result>;
  /** Tells users that the stream waits for quota; call before sleeping. */
  rateLimited(until: Date): void;
}

/** A query that is a stream under a name of its own. */
export interface Dataset {
  name: string;
  sql: string;
}

export interface CheckResult {
  checks: { title: string; status: 'passed' | 'failed' | 'skipped'; message: string | null }[];
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
  /**
   * `datasets`: `discover` makes streams of `ctx.datasets`, and `read` reads `stream.dataset_sql`. `ssh_tunnel`: it
   * reaches the other side by `ctx.connect` alone.
   */
  capabilities?: { datasets?: boolean; ssh_tunnel?: boolean };
  /** What `read` and `copy` do themselves; the engine does the rest row by row. */
  pushdown: { masking: Masking[]; filters: boolean };
  discover(ctx: ConnectorContext<Config>): Promise<StreamSchema[]>;
  /** One stream of the catalog as it is now, at little cost, before a read that begins `at`. Null: it is gone. */
  describe?(ctx: ConnectorContext<Config>, stream: StreamSchema, at: StreamState | null): Promise<StreamSchema | null>;
  read(ctx: ConnectorContext<Config>, request: ReadRequest): AsyncIterable<Batch>;
  /** Byte formats that `copy` can give for these columns, best first; empty: rows only. */
  byteFormats?(request: ReadRequest): ByteFormat[];
  copy?(ctx: ConnectorContext<Config>, request: ReadRequest, format: ByteFormat): Promise<ByteStream>;
  /**
   * After the last commit of a read with a `reader_id`: all up to `state` is in the destination, so the source may let
   * go of it. Need not succeed: the next read goes on from `state` and says the same.
   */
  acknowledge?(ctx: ConnectorContext<Config>, request: ReadRequest, state: StreamState): Promise<LogLag>;
  /** How much of its log the source keeps for this reader; null: nothing. */
  lag?(ctx: ConnectorContext<Config>, reader_id: string): Promise<LogLag | null>;
  /** Removes all that the source keeps for the reader; done when it does not return an error, also the second time. */
  release?(ctx: ConnectorContext<Config>, reader_id: string): Promise<void>;
  /** Rows that a full read would give, roughly, without reading them. */
  estimate?(ctx: ConnectorContext<Config>, request: ReadRequest): Promise<number | null>;
}

export interface LogLag {
  bytes: number;
  /** More than the user wants. */
  is_high: boolean;
}

export interface DestinationConnector<Config = unknown> extends ConnectorBase<Config> {
  type: 'destination';
  supported_destination_sync_modes: DestinationSyncMode[];
  /** It does what `Batch.changes` says. Without it only `append` takes changes, each as one more row. */
  applies_changes?: boolean;
  /** It does what `WriteTarget.replace_window` says: a window loaded again by append doubles nothing. */
  replaces_windows?: boolean;
  /** It does what `WriteTarget.rejects` says. */
  keeps_rejects?: boolean;
  open(ctx: ConnectorContext<Config>, target: WriteTarget): Promise<Writer>;
  /**
   * `chat`: it has `channels` and `postMessage`. `at_least_once`: it keeps no state and knows no fence, so an attempt
   * that follows a crash may send rows again, under the same idempotency keys. `ssh_tunnel`: as for sources.
   */
  capabilities?: { chat?: boolean; at_least_once?: boolean; ssh_tunnel?: boolean };
  /** The channels that there are now, in any order. */
  channels?(ctx: ConnectorContext<Config>): Promise<ChatChannel[]>;
  /** Posts a message; answers with what its thread goes on from. */
  postMessage?(ctx: ConnectorContext<Config>, message: ChatMessage): Promise<{ thread: string }>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- the registry holds connectors of every configuration
export type AnySource = SourceConnector<any>;
// oxlint-disable-next-line typescript/no-explicit-any -- as above
export type AnyDestination = DestinationConnector<any>;
export type AnyConnector = AnySource | AnyDestination;

/** Gives `check`, `discover` and `read` the type of the settings. */
export const defineSource = <Config>(connector: SourceConnector<Config>) => connector;
export const defineDestination = <Config>(connector: DestinationConnector<Config>) => connector;
