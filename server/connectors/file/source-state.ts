import type { StreamState } from '../define.ts';
import { ConfigurationError } from '../errors.ts';
import { microsOf, timestampText } from '../timestamp-text.ts';
import type { FoundFile } from './root.ts';

/** A file that was read in part, by when it was last changed: another time means another content. */
interface Position {
  name: string;
  modified: number;
  rows: number;
}

export interface FileToRead {
  file: FoundFile;
  /** Rows of it that were read before. */
  skip: number;
}

/** The files that are new or changed since, the oldest first. */
export function filesAfter(found: FoundFile[], state: StreamState | null): FileToRead[] {
  const { cursor, names, partly } = parse(state);
  return found
    .filter(({ modified, name }) => modified > cursor || (modified === cursor && !names.includes(name)))
    .toSorted((a, b) => a.modified - b.modified || (a.name < b.name ? -1 : 1))
    .map((file) => ({ file, skip: partly.find((position) => isOf(position, file))?.rows ?? 0 }));
}

/** `rows` of the file are read, counted from its beginning; everything older is done. */
export function stateAfterRows(state: StreamState, file: FoundFile, rows: number): StreamState {
  const { partly } = parse(state);
  const others = partly.filter(({ name }) => name !== file.name);
  return { ...state, partly: [...others, { name: file.name, modified: file.modified, rows }] };
}

/** The whole file is read. */
export function stateAfterFile(state: StreamState, file: FoundFile): StreamState {
  const { cursor, names, partly } = parse(state);
  const same = file.modified === cursor;
  return {
    cursor: timestampText(Math.max(file.modified, cursor)),
    names: same ? [...names, file.name] : [file.name],
    partly: partly.filter(({ name }) => name !== file.name),
  };
}

const isOf = (position: Position, file: FoundFile) =>
  position.name === file.name && position.modified === file.modified;

/** A user may have set the cursor alone. */
function parse(state: StreamState | null): { cursor: number; names: string[]; partly: Position[] } {
  const cursor = state?.cursor ? microsOf(state.cursor) : Number.NEGATIVE_INFINITY;
  if (Number.isNaN(cursor))
    throw new ConfigurationError('invalid_cursor', `"${state?.cursor}" is no date or timestamp`);
  const names = Array.isArray(state?.names) ? (state.names as string[]) : [];
  const partly = Array.isArray(state?.partly) ? (state.partly as Position[]) : [];
  return { cursor, names, partly };
}
