import type { Masking, ReadRequest } from './read-request.ts';
import type { LogicalType, StreamState } from './stream.ts';

/*
 * How rows of a source and of a destination are compared without moving them: each side reduces them to counts and sums
 * of hashes, first by ranges of keys, then by the keys of the ranges that differ.
 */

/** A column of a comparison. Both sides are given the same columns in the same order, each under its own name. */
export interface ComparedColumn {
  name: string;
  /** Of the destination's column: both sides bring the value into its canonical form. */
  type: LogicalType;
}

/** What one side compares. `key` are indexes in `columns`; none: rows have no key, and are compared as a multiset. */
interface Comparison {
  columns: ComparedColumn[];
  key: number[];
}

/** The masks that each digest of a source applies, also where the engine applies them to what is read. */
export const DIGESTED_MASKS: Masking[] = ['none', 'hash_sha256', 'redact'];

/** The rows of a stream. `read.columns` are the columns with their masks, which are among `DIGESTED_MASKS`. */
export interface SourceComparison extends Comparison {
  read: ReadRequest;
}

/** The rows of a table that belong to a stream. */
export interface DestinationComparison extends Comparison {
  schema: string | null;
  table: string;
  /** `existing`: those without a deletion mark. `latest`: of each key the row with the highest value of the column. */
  rows: { kind: 'all' } | { kind: 'existing' } | { kind: 'latest'; by: string };
}

/**
 * How the value of a column is compared: as the dialect stores it, by the text that the dialect shows, by the canonical
 * text of its logical type, which all dialects share, or not at all.
 */
export type DigestForm = 'native' | 'text' | 'canonical' | 'none';

/** A column as one side has it. */
export interface DigestColumnType {
  /** The class of types whose values the dialect hashes and orders alike everywhere; null: none. */
  native: string | null;
  /** This side can compute the canonical text. */
  canonical: boolean;
}

/** How both sides reduce their rows. It is agreed on once the columns of both are known. */
export interface DigestPlan {
  /** Hash by the dialect's own function, which two sides of one dialect share, or by MD5 of canonical texts. */
  hash: 'native' | 'md5';
  forms: DigestForm[];
}

/** The key of a row as texts, in the order of `Comparison.key`. */
export type RowKey = string[];

/** `sum`: of the hashes of the rows. A sum, unlike an exclusive or, differs if a row is there twice. */
export interface RowsDigest {
  count: number;
  sum: string;
}

export interface KeyDigest extends RowsDigest {
  key: RowKey;
  /** The row has changed since the stream was loaded; null: unknown. */
  changed: boolean | null;
}

/** A snapshot of one side. All methods see the same rows. */
export interface Digester {
  /** Sides with the same dialect share its hash function. Null: this side has none. */
  dialect: string | null;
  types: DigestColumnType[];
  /** When the snapshot was taken, by the clock of the side, and its position in the log where there is one. */
  at: { instant: string; position: string | null };
  /** About one key in `rows` of all keys, in ascending order. */
  bounds(plan: DigestPlan, rows: number): Promise<RowKey[]>;
  /** One digest for each range: below the first bound, from each bound to the next, and from the last on. */
  ranges(plan: DigestPlan, bounds: RowKey[]): Promise<RowsDigest[]>;
  /** The rows of some ranges by their keys; without a key by their hashes. */
  rows(plan: DigestPlan, bounds: RowKey[], ranges: number[]): Promise<KeyDigest[]>;
  /** The rows with these keys. */
  find(plan: DigestPlan, keys: RowKey[], since: LoadedUpTo): Promise<KeyDigest[]>;
  close(): Promise<void>;
}

/** Up to where the stream was loaded: for a source, to tell rows that have changed since. */
export interface LoadedUpTo {
  /** The state of an incremental stream after its last commit. */
  state: StreamState | null;
  /** What the source reported to `ReadRequest.onSnapshot` in the last run. */
  snapshot: string | null;
}
