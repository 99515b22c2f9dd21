import type { Field, StreamSchema, StreamState, SyncMode } from './connector.ts';

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
  /**
   * Half-open window `[start, end)` on the cursor, ISO: dates, whose days begin at midnight UTC, or instants like
   * `2026-03-29T23:00:00.000Z`. Null: no limit on that side.
   */
  window: { start: string | null; end: string | null } | null;
  /** Names the reader of a `change_log`, the same in all runs. Absent: the stream is read without its log. */
  reader_id?: string;
}
