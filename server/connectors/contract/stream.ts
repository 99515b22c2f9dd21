import { LOGICAL_TYPES, type LogicalType } from '../../../db/schema/logical-types.ts';

export { LOGICAL_TYPES, type LogicalType };

export type SyncMode = 'full_refresh' | 'incremental';
export type DestinationSyncMode = 'append' | 'overwrite' | 'append_dedup' | 'update' | 'soft_delete';

/** A stream as `discover` finds it. It is stored in the catalog and passed back to `read`. */
export interface StreamSchema {
  namespace: string | null;
  name: string;
  description: string | null;
  fields: Field[];
  supported_sync_modes: SyncMode[];
  /** Whether the source determines the cursor; otherwise the user selects a field. */
  source_defined_cursor: boolean;
  default_cursor_field: string[] | null;
  /** Paths of the key's fields; null if the user has to select them. */
  source_defined_primary_key: string[][] | null;
  /** Whether a read can resume from a state in the middle. */
  is_resumable: boolean;
  /** Whether a read can be limited to a window of days on the cursor. */
  supports_date_window: boolean;
  /** Whether new connections select the stream by default. */
  suggested: boolean;
  /** The query that the stream consists of, instead of a table. */
  dataset_sql?: string;
  /**
   * Incremental reads follow a change log, of which the source retains for each consumer what is not acknowledged yet.
   * Such a read gets a `reader_id`, and `release` is called after the last one. The engine applies masks and filters
   * itself, whatever `pushdown` declares: it must distinguish a filtered row from a deleted one.
   */
  change_log?: boolean;
  /** What changes rows without a trace in a log or a cursor. Only `describe` finds it. */
  details?: StreamDetails;
}

export interface StreamDetails {
  partitions: Partition[];
  enum_labels: EnumLabel[];
}

/** A part of a table that can leave it or join it with all its rows. */
export interface Partition {
  /** Stays the same when it is renamed. */
  id: string;
  name: string;
  /** Another one once its rows were removed or written anew as a whole. */
  file: string;
  /** That has happened since it was created. */
  rewritten: boolean;
  /** It existed before it joined the table, so it may have brought rows. */
  attached: boolean;
}

/** A value of the enum type of a column. */
export interface EnumLabel {
  /** Stays the same when it is renamed. */
  id: string;
  column: string;
  label: string;
}

export interface Field {
  /** Path of the value in a record; a single element for a column. */
  path: string[];
  type: LogicalType;
  /** The source's own type, such as `numeric(12,2)`, as shown to users. */
  source_type: string | null;
  /** The system that `source_type` belongs to. A destination of the same dialect creates its column with that type. */
  dialect: string | null;
  nullable: boolean;
  is_primary_key: boolean;
  is_cursor_candidate: boolean;
  /** The source orders and compares different values as equal, such as texts that differ only in case. Absent: false. */
  inexact_order?: boolean;
  /** The structure of the values that discovery found. Only the source interprets it, so that all reads agree. */
  layout?: string;
}

/**
 * Where a read resumes, as JSON. Only the source interprets it, except for `cursor`: users see it and can set it alone,
 * so a source must accept a state that has nothing else.
 */
export interface StreamState {
  cursor: string | null;
  /** Where the rows up to here came from, stored by the engine for sources that declare `origin`. */
  origin?: SourceOrigin;
  /** Set by the engine: the stream is not read on from here, because the source keeps nothing for it. */
  parked?: Parking;
  [key: string]: unknown;
}

/** Why a stream that shares a log with others was left behind. Only a new state, such as none, lets it continue. */
export interface Parking {
  at: string;
  code: string;
  message: string;
  origin: 'source' | 'destination';
}

/** Identifies a server or file and how far it was, as JSON that the source alone interprets. */
export type SourceOrigin = Record<string, unknown>;

/** Whether a source still has what was read from an earlier origin. */
export interface OriginComparison {
  /**
   * `kept`: yes. `lost`: no. `unknown`: the source cannot prove it, so the read continues only if there are rows at or
   * after its cursor, with a warning.
   */
  history: 'kept' | 'lost' | 'unknown';
  /** For users, unless `kept`: names both origins. */
  difference: string;
  /** What the next read is compared with. */
  origin: SourceOrigin;
}

/** A user's query that is a stream under its own name. */
export interface Dataset {
  name: string;
  sql: string;
}
