import type { StreamState } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { microsOf, timestampText } from '../cells/timestamp-text.ts';
import type { FoundFile } from '../kits/files/stores/local-files.ts';

/** A file of one content: another time of change means another content. */
interface Version {
  name: string;
  modified: number;
}

/** A file that was read in part. */
interface Position extends Version {
  rows: number;
}

export interface FileToRead {
  file: FoundFile;
  /** Rows of it that were read before. */
  skip: number;
}

/**
 * A file may come to light after younger ones were read: a rename keeps the time of the last write, and S3 dates a
 * large object by the beginning of its upload. What was read of this long before the youngest file is kept by name.
 */
const LOOK_BACK_MICROS = 3600 * 1_000_000;
/** Names that a state keeps, but for those of one moment. */
const MOST_NAMES = 5000;

/** The files that are new or changed since, the oldest first. */
export function filesAfter(found: FoundFile[], state: StreamState | null): FileToRead[] {
  const { since, seen, partly } = parse(state);
  const read = new Set(seen.map(keyOf));
  return found
    .filter((file) => file.modified >= since && !read.has(keyOf(file)))
    .toSorted(byAge)
    .map((file) => ({ file, skip: partly.find((position) => keyOf(position) === keyOf(file))?.rows ?? 0 }));
}

/** `rows` of the file are read, counted from its beginning; everything older is done. */
export function stateAfterRows(state: StreamState, file: FoundFile, rows: number): StreamState {
  const { partly } = parse(state);
  const others = partly.filter(({ name }) => name !== file.name);
  return { ...state, partly: [...others, { name: file.name, modified: file.modified, rows }] };
}

/** The whole file is read. */
export function stateAfterFile(state: StreamState, file: FoundFile): StreamState {
  const { cursor, since, seen, partly } = parse(state);
  const newest = Math.max(file.modified, cursor);
  const all = [...seen, { name: file.name, modified: file.modified }];
  const from = Math.max(since, newest - LOOK_BACK_MICROS, overflow(all));
  return {
    cursor: timestampText(newest),
    since: Number.isFinite(from) ? timestampText(from) : null,
    seen: all.filter(({ modified }) => modified >= from),
    partly: partly.filter(({ name }) => name !== file.name),
  };
}

/** From where on names can be kept. */
function overflow(seen: Version[]): number {
  if (seen.length <= MOST_NAMES) return Number.NEGATIVE_INFINITY;
  return seen.map(({ modified }) => modified).toSorted((a, b) => b - a)[MOST_NAMES / 2] as number;
}

const keyOf = ({ name, modified }: Version) => `${modified} ${name}`;
const byAge = (a: FoundFile, b: FoundFile) => a.modified - b.modified || (a.name < b.name ? -1 : 1);

interface Known {
  cursor: number;
  /** Files from here on count, but for those seen. */
  since: number;
  seen: Version[];
  partly: Position[];
}

/** A user may have set the cursor alone. States of the first version have `names`, those at the cursor. */
function parse(state: StreamState | null): Known {
  const cursor = state?.cursor ? microsOf(state.cursor) : Number.NEGATIVE_INFINITY;
  if (Number.isNaN(cursor))
    throw new ConfigurationError('invalid_cursor', `"${state?.cursor}" is no date or timestamp`);
  const partly = listOf<Position>(state?.partly);
  const names = listOf<string>(state?.names).map((name) => ({ name, modified: cursor }));
  const since = typeof state?.since === 'string' ? microsOf(state.since) : cursor;
  return { cursor, since, seen: Array.isArray(state?.seen) ? listOf<Version>(state.seen) : names, partly };
}

const listOf = <One>(value: unknown): One[] => (Array.isArray(value) ? (value as One[]) : []);
