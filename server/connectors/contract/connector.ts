import type { z } from 'zod';
import type { AUTH_METHODS } from '../../../db/schema/closed-sets.ts';
import type { Batch, ByteFormat, ByteStream, Cell } from './cells.ts';
import type { LogLag } from './changes.ts';
import type { Consent } from './consent.ts';
import type { ChatChannel, ChatMessage } from './chat.ts';
import type { ConnectorContext, RequestRecord } from './context.ts';
import type { DestinationComparison, Digester, SourceComparison } from './digest.ts';
import type { Receiver } from './inbox.ts';
import type { Masking, ReadRequest } from './read-request.ts';
import type { Replication, ReplicationTarget, ReplicationWriter } from './replication.ts';
import type { RowComparer } from './sent-rows.ts';
import type { AdvancedSequence, SourceSequence, WantedSequence } from './sequences.ts';
import type { PublishGroup, SnapshotKeeper } from './snapshot.ts';
import type {
  Dataset,
  DestinationSyncMode,
  LogicalType,
  OriginComparison,
  SourceOrigin,
  StreamSchema,
  StreamState,
  SyncMode,
} from './stream.ts';
import type { NameRules, TableLocation, TableOfStream, Writer, WriteTarget } from './writer.ts';

/*
 * The contract of connectors. The other files of this folder define its parts; this one exports them all, so that a
 * connector imports its types from here.
 */
export type * from './cells.ts';
export type * from './changes.ts';
export type * from './consent.ts';
export type * from './context.ts';
export type * from './digest.ts';
export type * from './inbox.ts';
export type * from './read-request.ts';
export type * from './replication.ts';
export type * from './sent-rows.ts';
export type * from './sequences.ts';
export type * from './snapshot.ts';
export type * from './stream.ts';
export type * from './watched-session.ts';
export type * from './write-counts.ts';
export type * from './writer.ts';
export { LOGICAL_TYPES } from './stream.ts';

/** What the catalog of connectors shows. */
export interface ConnectorDescription {
  display_name: string;
  description: string;
  category: 'database' | 'warehouse' | 'file' | 'saas' | 'ads' | 'crm' | 'chat' | 'http';
  version: string;
  release_stage: 'alpha' | 'beta' | 'generally_available' | 'deprecated';
  auth_methods: (typeof AUTH_METHODS)[number][];
  documentation_url?: string;
  /** Uses neither network nor recorder, which fail in its context. Its runs have no network log. */
  offline?: boolean;
  /** Not listed, and usable by name with the setting TEST_CONNECTORS alone. */
  hidden?: boolean;
}

/** Which rows of a table are shown to users. */
export interface TableSample {
  schema: string | null;
  table: string;
  limit: number;
  /** A stream run: shows the rows that it rejected, which are kept beside the table. Null: the rows of the table. */
  rejected_by: string | null;
}

export interface SampledTable {
  columns: string[];
  rows: Cell[][];
}

/** The first page of a stream, with the fields that its records show. */
export interface TriedPage {
  records: Record<string, unknown>[];
  fields: StreamSchema['fields'];
  /** The request of the next page before it is signed; null: there is none. */
  next: Pick<RequestRecord, 'method' | 'url' | 'headers' | 'body'> | null;
}

/** The definition of an API, drafted from a description of it, for a user to confirm. */
export interface DefinitionDraft {
  definition: string;
  /** What was guessed for all streams, as sentences. */
  assumptions: string[];
  /** `assumptions`: what was guessed, as sentences. */
  streams: { name: string; path: string; assumptions: string[] }[];
  /** Operations without a stream. */
  left_out: { path: string; reason: string }[];
  /** Names of the values that the definition uses. */
  config: string[];
  secrets: string[];
}

/** What a manifest declares, without any request. */
export interface ConnectorOutline {
  streams: {
    name: string;
    primary_key: string[];
    cursor_field: string | null;
    /** Logical types by column; null: found by requests. */
    fields: Record<string, LogicalType> | null;
  }[];
  /** Settings that its sources need. `name` is the path, joined with dots. */
  parameters: { name: string; type: string; required: boolean; secret: boolean }[];
  /** JSON Schema of their configuration, secrets included. */
  specification: Record<string, unknown> | null;
  /** Parts that are not supported. */
  unsupported: { place: string; what: string }[];
  /** Hashes of everything that decides where the secrets of its sources are sent. */
  directs_secrets: string[];
  documentation_url: string | null;
}

interface ConnectorBase<Config> extends ConnectorDescription {
  /** Unique among connectors of the same `type`. */
  name: string;
  /** The settings. Each field has `.meta({ label, … })`, secrets `.meta({ secret: true })`: see `ParameterMeta`. */
  config: z.ZodType<Config> & z.ZodObject;
  /**
   * Tests the settings against the other side. Throws a ConnectorError or returns the result of each check.
   * `at.schema`: where a connection creates its tables, tested instead of the default schema of a destination.
   */
  check(ctx: ConnectorContext<Config>, at?: { schema: string | null }): Promise<CheckResult>;
  /**
   * What an owner of the system runs so that the user of these settings, which lack the secrets and may be incomplete,
   * can do all that they ask for. Absent: nothing is to be granted.
   */
  rights?(settings: Partial<Config>): string;
  /** Absent: users enter tokens themselves. */
  consent?: Consent;
  /** Values that a parameter can have at this moment, from value to label. */
  possibleValues?: Record<string, (ctx: ConnectorContext<Config>) => Promise<Record<string, string>>>;
}

export interface CheckResult {
  checks: CheckStep[];
}

interface CheckStep {
  title: string;
  status: 'passed' | 'failed' | 'skipped';
  message: string | null;
  /** What to do about a failure, as sentences. */
  fix?: string;
  /** Statements that grant what is missing, for an owner of the database to run. */
  statements?: string[];
}

/** A connector that reads. Optional members are capabilities. */
export interface SourceConnector<Config = unknown> extends ConnectorBase<Config> {
  type: 'source';
  supported_sync_modes: SyncMode[];
  /**
   * `datasets`: `discover` returns streams for `ctx.datasets`, and `read` reads `stream.dataset_sql`; needs
   * `describeDataset`. `ssh_tunnel`: all connections are opened with `ctx.connect`.
   */
  capabilities?: { datasets?: boolean; ssh_tunnel?: boolean };
  /** What `read` and `copy` do themselves. The engine does the rest row by row. */
  pushdown: { masking: Masking[]; filters: boolean };
  discover(ctx: ConnectorContext<Config>): Promise<StreamSchema[]>;
  /**
   * The current schema of one stream of the catalog, at little cost. Called before a read that starts `at` a state (null:
   * at the beginning), so that changes of the source are detected by name. Null: the stream no longer exists.
   */
  describe?(ctx: ConnectorContext<Config>, stream: StreamSchema, at: StreamState | null): Promise<StreamSchema | null>;
  /** The stream of a query of users, which is not run for it. @throws ConfigurationError that names the dataset */
  describeDataset?(ctx: ConnectorContext<Config>, dataset: Dataset): Promise<StreamSchema>;
  read(ctx: ConnectorContext<Config>, request: ReadRequest): AsyncIterable<Batch>;
  /**
   * Opens a snapshot for reads of these tables with `ReadRequest.snapshot`. It ends with the keeper or `ctx.signal`.
   * Absent: each stream is read at a moment of its own.
   * @param readers how many of these reads run at the same time
   * @throws ConfigurationError when this user or server cannot share a snapshot
   */
  keepSnapshot?(
    ctx: ConnectorContext<Config>,
    tables: readonly Pick<StreamSchema, 'namespace' | 'name'>[],
    readers: number,
  ): Promise<SnapshotKeeper>;
  /** Only reads in the process of the keeper can join its snapshot, so one worker claims all streams that share it. */
  keeps_snapshot_in_process?: boolean;
  /** What nothing can be written to while a snapshot is kept, as `TableLocation.store`. Absent: nothing is locked. */
  locks?(settings: Partial<Config>): string;
  /** Byte formats that `copy` can produce for these columns, best first. Empty: rows only. */
  byteFormats?(request: ReadRequest): ByteFormat[];
  /** May give another one of them, where what it finds does not have this one. */
  copy?(ctx: ConnectorContext<Config>, request: ReadRequest, format: ByteFormat): Promise<ByteStream>;
  /**
   * Called after the last commit of a read with a `reader_id`: everything up to `state` is in the destination, so the
   * source can release it. May fail: the next read resumes from `state` and acknowledges it again.
   */
  acknowledge?(ctx: ConnectorContext<Config>, request: ReadRequest, state: StreamState): Promise<LogLag>;
  /** Whether the change log still has everything after `request.state`. Absent: every state can be read from again. */
  canResume?(ctx: ConnectorContext<Config>, request: ReadRequest): Promise<boolean>;
  /**
   * How much of its change log the source retains for this consumer, after it has released what is confirmed; null if nothing.
   */
  lag?(ctx: ConnectorContext<Config>, reader_id: string): Promise<LogLag | null>;
  /** Removes everything that the source retains for this consumer. Idempotent; complete once it returns. */
  release?(ctx: ConnectorContext<Config>, reader_id: string): Promise<void>;
  /**
   * Recognizes a source that was set back to an older copy, or replaced by another one, when an incremental stream without
   * `change_log` opens. Absent: not compared.
   */
  origin?: {
    /** Called before the rows are read. Null: unknown, so that nothing is compared. */
    find(ctx: ConnectorContext<Config>): Promise<SourceOrigin | null>;
    compare(ctx: ConnectorContext<Config>, known: SourceOrigin, found: SourceOrigin): Promise<OriginComparison>;
  };
  /** Reads all streams with `change_log` of a run together, for destinations with `openReplication`. */
  replication?: Replication<Config>;
  /** Approximate number of rows of a full read, without reading them; null if unknown. */
  estimate?(ctx: ConnectorContext<Config>, request: ReadRequest): Promise<number | null>;
  /** Implements `ReadRequest.keys`. */
  reads_keys?: boolean;
  /** Other services send events to an address of the service. `read` finds them in `ctx.inbox`. */
  receiver?: Receiver<Config>;
  /** Reads the first page of a stream (null: of the first one), for users who write the definition of an API. */
  tryPage?(ctx: ConnectorContext<Config>, stream_name: string | null): Promise<TriedPage>;
  /** Drafts a definition from an OpenAPI document. Sends no requests. @throws ConfigurationError */
  draftDefinition?(openapi: string): DefinitionDraft;
  /** What the documents among these parameters declare. Sends no requests. @throws ConfigurationError */
  outline?(parameters: Record<string, unknown>): ConnectorOutline;
  /** Opens a snapshot of a stream for a comparison with its destination. */
  digest?(ctx: ConnectorContext<Config>, comparison: SourceComparison): Promise<Digester>;
  /** The sequences that number rows of these tables, and those of their schemas that belong to no column. */
  sequences?(
    ctx: ConnectorContext<Config>,
    tables: readonly Pick<StreamSchema, 'namespace' | 'name'>[],
  ): Promise<SourceSequence[]>;
}

/** A connector that writes. Optional members are capabilities. */
export interface DestinationConnector<Config = unknown> extends ConnectorBase<Config> {
  type: 'destination';
  supported_destination_sync_modes: DestinationSyncMode[];
  /** Applies `Batch.changes` in every mode. Without it only `append` accepts changes, each as one more row. */
  applies_changes?: boolean;
  /** Implements `WriteTarget.replace_window`: appending a window again duplicates nothing. */
  replaces_windows?: boolean;
  /** Implements `WriteTarget.rejects`. */
  keeps_rejects?: boolean;
  /** Implements `WriteTarget.sent`: a full refresh with `append_dedup` sends only the rows that differ by this. */
  identifyRows?(settings: Config, table: Pick<TableOfStream, 'table' | 'columns' | 'primary_key'>): RowComparer;
  /** Absent: names differ as they are written, and may have any length. */
  names?: NameRules;
  /** Where these settings, which lack the secrets, keep the tables. Absent: the destination has no tables. */
  locate?(settings: Partial<Config>): TableLocation;
  /** The statement with which a run creates the table, for settings that lack the secrets. Absent: unknown beforehand. */
  defineTable?(settings: Partial<Config>, table: TableOfStream): string;
  /**
   * Reads the first rows of a table. Absent: the destination cannot be read. @throws ConfigurationError
   * `destination_table_missing`
   */
  sampleTable?(ctx: ConnectorContext<Config>, sample: TableSample): Promise<SampledTable>;
  /** Prepares to write one stream. @throws FencedError if a newer attempt has claimed it */
  open(ctx: ConnectorContext<Config>, target: WriteTarget): Promise<Writer>;
  /** Opens a snapshot of a table for a comparison with the stream that is loaded into it. */
  digest?(ctx: ConnectorContext<Config>, comparison: DestinationComparison): Promise<Digester>;
  /** Sets sequences to values that the source has not given yet, never back. One result for each, in their order. */
  advanceSequences?(
    ctx: ConnectorContext<Config>,
    wanted: { schema: string | null; sequences: readonly WantedSequence[]; dry_run: boolean },
  ): Promise<AdvancedSequence[]>;
  /**
   * Prepares to write several streams of one schema with common commits.
   * @throws StreamsFailed for those that cannot be written; FencedError as above
   */
  openReplication?(ctx: ConnectorContext<Config>, targets: readonly ReplicationTarget[]): Promise<ReplicationWriter>;
  /**
   * Makes the tables visible that writers with `WriteTarget.publish_with` have finished, all in one commit, or none.
   * Idempotent: resolves if an earlier call has done it.
   * @throws FencedError if a newer attempt has claimed one of the streams
   */
  publish?(ctx: ConnectorContext<Config>, group: PublishGroup): Promise<void>;
  /**
   * Removes what these stream runs have finished and not published, and lets no older attempt finish any more: the fences
   * of the group are newer than theirs. Idempotent. Leaves streams alone that have a newer fence.
   */
  discard?(ctx: ConnectorContext<Config>, group: PublishGroup): Promise<void>;
  /**
   * `at_least_once`: stores no state and checks no fence, so the attempt after a
   * crash may send rows again under the same idempotency keys. `ssh_tunnel`: as for sources.
   */
  capabilities?: { at_least_once?: boolean; ssh_tunnel?: boolean };
  /** The current channels, in any order. */
  channels?(ctx: ConnectorContext<Config>): Promise<ChatChannel[]>;
  /** Posts a message. @returns the thread that later messages can continue */
  postMessage?(ctx: ConnectorContext<Config>, message: ChatMessage): Promise<{ thread: string }>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- the registry holds connectors of every configuration
export type AnySource = SourceConnector<any>;
// oxlint-disable-next-line typescript/no-explicit-any -- as above
export type AnyDestination = DestinationConnector<any>;
export type AnyConnector = AnySource | AnyDestination;

/** Infers the type of the settings in `check`, `discover` and `read`. */
export const defineSource = <Config>(connector: SourceConnector<Config>) => connector;
export const defineDestination = <Config>(connector: DestinationConnector<Config>) => connector;
