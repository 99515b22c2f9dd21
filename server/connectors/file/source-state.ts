import type { StreamState } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { microsOf, timestampText } from '../cells/timestamp-text.ts';
import type { FoundFile } from '../kits/files/stores/store.ts';

/** A file with one content. States of earlier versions lack size and tag. */
interface Version extends Pick<FoundFile, 'name' | 'modified' | 'tag'> {
  size?: number;
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

/**
 * The files that are new or have changed since the state, oldest first.
 * @throws ConfigurationError `source_went_back`
 */
export function filesAfter(found: FoundFile[], state: StreamState | null): FileToRead[] {
  const { since, seen, partly } = parse(state);
  const read = latest(seen);
  const begun = latest(partly);
  for (const file of found) refuseOlder(file, read.get(file.name) ?? begun.get(file.name));
  return found
    .filter((file) => file.modified >= since && !isSame(read.get(file.name), file))
    .toSorted(byAge)
    .map((file) => ({ file, skip: isSame(begun.get(file.name), file) ? begun.get(file.name)!.rows : 0 }));
}

/** By name, the version that was read last. */
const latest = <One extends Version>(versions: One[]) => new Map(versions.map((version) => [version.name, version]));

/** Modification times may have a whole second: size and tag tell contents of one second apart. */
const isSame = (version: Version | undefined, { modified, size, tag }: FoundFile): boolean =>
  version !== undefined &&
  version.modified === modified &&
  (version.size === undefined || size < 0 || version.size === size) &&
  (version.tag === undefined || tag === undefined || version.tag === tag);

function refuseOlder({ name, modified }: FoundFile, version: Version | undefined): void {
  if (!version || modified >= version.modified) return;
  throw new ConfigurationError(
    'source_went_back',
    `${name} was read as of ${timestampText(version.modified)}, and is now as of ${timestampText(modified)}, an older ` +
      'copy. Reset the cursor to read all files again, or set it to the time to read on from',
  );
}

/** The state after the first `rows` rows of the file. */
export function stateAfterRows(state: StreamState, file: FoundFile, rows: number): StreamState {
  const { partly } = parse(state);
  const others = partly.filter(({ name }) => name !== file.name);
  return { ...state, partly: [...others, { ...versionOf(file), rows }] };
}

/** The state after the whole file. */
export function stateAfterFile(state: StreamState, file: FoundFile): StreamState {
  const { cursor, since, seen, partly } = parse(state);
  const newest = Math.max(file.modified, cursor);
  const all = [...seen.filter(({ name }) => name !== file.name), versionOf(file)];
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

const versionOf = ({ name, modified, size, tag }: FoundFile): Version => ({
  name,
  modified,
  ...(size >= 0 && { size }),
  ...(tag !== undefined && { tag }),
});
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
