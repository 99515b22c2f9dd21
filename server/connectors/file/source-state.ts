import type { StreamState } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { microsOf, timestampText } from '../cells/timestamp-text.ts';
import type { FoundFile } from '../kits/files/stores/store.ts';

/** A file with one content: a different modification time means different content. */
interface Version {
  name: string;
  modified: number;
}

/** A file that was read partly. */
interface Position extends Version {
  rows: number;
}

export interface FileToRead {
  file: FoundFile;
  /** Number of its rows that were read before. */
  skip: number;
}

/**
 * A file can appear after newer ones were read: a rename keeps the time of the last write, and S3 dates a large object
 * by the start of its upload. So the state keeps the names of all files read within this time before the newest one.
 */
const LOOKBACK_MICROS = 3600 * 1_000_000;
/** Limit on the names in a state. Files with the same modification time are kept or dropped together. */
const MAX_NAMES = 5000;

/** The files that are new or have changed since the state, oldest first. */
export function filesAfter(found: FoundFile[], state: StreamState | null): FileToRead[] {
  const { since, seen, partly } = parse(state);
  const read = new Set(seen.map(keyOf));
  return found
    .filter((file) => file.modified >= since && !read.has(keyOf(file)))
    .toSorted(byAge)
    .map((file) => ({ file, skip: partly.find((position) => keyOf(position) === keyOf(file))?.rows ?? 0 }));
}

/** The state after the first `rows` rows of the file. */
export function stateAfterRows(state: StreamState, file: FoundFile, rows: number): StreamState {
  const { partly } = parse(state);
  const others = partly.filter(({ name }) => name !== file.name);
  return { ...state, partly: [...others, { name: file.name, modified: file.modified, rows }] };
}

/** The state after the whole file. */
export function stateAfterFile(state: StreamState, file: FoundFile): StreamState {
  const { cursor, since, seen, partly } = parse(state);
  const newest = Math.max(file.modified, cursor);
  const all = [...seen, { name: file.name, modified: file.modified }];
  const from = Math.max(since, newest - LOOKBACK_MICROS, overflow(all));
  return {
    cursor: timestampText(newest),
    since: Number.isFinite(from) ? timestampText(from) : null,
    seen: all.filter(({ modified }) => modified >= from),
    partly: partly.filter(({ name }) => name !== file.name),
  };
}

/** The earliest modification time whose names still fit. */
function overflow(seen: Version[]): number {
  if (seen.length <= MAX_NAMES) return Number.NEGATIVE_INFINITY;
  return seen.map(({ modified }) => modified).toSorted((a, b) => b - a)[MAX_NAMES / 2] as number;
}

const keyOf = ({ name, modified }: Version) => `${modified} ${name}`;
const byAge = (a: FoundFile, b: FoundFile) => a.modified - b.modified || (a.name < b.name ? -1 : 1);

interface Known {
  cursor: number;
  /** Files changed at or after this time are read, unless `seen` has them. */
  since: number;
  seen: Version[];
  partly: Position[];
}

/** A user may have set the cursor alone. States of the first version have `names`: the files at the cursor. */
function parse(state: StreamState | null): Known {
  const cursor = state?.cursor ? microsOf(state.cursor) : Number.NEGATIVE_INFINITY;
  if (Number.isNaN(cursor))
    throw new ConfigurationError('invalid_cursor', `"${state?.cursor}" is not a date or timestamp`);
  const partly = listOf<Position>(state?.partly);
  const names = listOf<string>(state?.names).map((name) => ({ name, modified: cursor }));
  const since = typeof state?.since === 'string' ? microsOf(state.since) : cursor;
  return { cursor, since, seen: Array.isArray(state?.seen) ? listOf<Version>(state.seen) : names, partly };
}

const listOf = <One>(value: unknown): One[] => (Array.isArray(value) ? (value as One[]) : []);
