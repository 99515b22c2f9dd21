import type { SharedSnapshot } from './snapshot.ts';
import type { Field, StreamSchema, StreamState, SyncMode } from './stream.ts';

export type Masking = 'none' | 'hash_sha256' | 'hash_sha256_salted' | 'redact' | 'encrypt';

export interface Filter {
  field: string;
  operator:
    | 'eq'
    | 'ne'
    | 'gt'
    | 'gte'
    | 'lt'
    | 'lte'
    | 'in'
    | 'not_in'
    | 'contains'
    | 'starts_with'
    | 'is_null'
    | 'is_not_null'
    | 'between';
  value: unknown;
}

/** A requested column. `masking` is `none` unless the source declares it in `pushdown.masking`. */
export interface ReadColumn {
  field: Field;
  masking: Masking;
}

/** One read of one stream. */
export interface ReadRequest {
  stream: StreamSchema;
  columns: ReadColumn[];
  /** Empty unless the source declares `pushdown.filters`. */
  filters: Filter[];
  sync_mode: SyncMode;
  cursor_field: string[] | null;
  primary_key: string[][];
  /** Where to resume; null: from the start. */
  state: StreamState | null;
  /**
   * Half-open window `[start, end)` on the cursor in ISO 8601: dates, which start at midnight UTC, or instants such as
   * `2026-03-29T23:00:00.000Z`. Null: no limit on that side.
   */
  window: { start: string | null; end: string | null } | null;
  /** As in `WriteTarget`, for bytes that the source converts. */
  inexact_values?: 'refuse' | 'allow';
  /** Only for sources with `keepSnapshot`: the moment to read. Absent or null: the moment at which the read begins. */
  snapshot?: SharedSnapshot | null;
  /** The CDC consumer of a stream with `change_log`, the same in all runs. Absent: the stream is read without its log. */
  reader_id?: string;
  /** Only rows with these values, as texts, in the fields `paths`. Only for sources that declare `reads_keys`. */
  keys?: { paths: string[][]; values: string[][] };
  /** Called with the snapshot that the read sees, where the source can compare rows with it: all of it will be read. */
  onSnapshot?(snapshot: string): void;
}
