import { earlierRows } from '../../../cells/cursor.ts';
import type { Cell, Field, ReadRequest, StreamState } from '../../../contract/connector.ts';

/** How the entries of a boundary were derived, so that a read with other columns or masks can still compare them. */
interface Shape {
  /** Hash of the columns and masks that the rows had. */
  columns: string;
  /** Names of the key, of which the entries then have a hash; null: there is none. */
  key: string | null;
  /** Names of the unmasked columns, of each of which the entries have a hash. */
  cells: string[];
  /** The types of `cells`. Absent in older states. */
  types?: (string | null)[];
}

/** Recognizes rows that an earlier read returned, also after the columns or settings of the stream changed. */
export interface RowIdentity {
  shape: Shape;
  /** What a boundary keeps of a row with the cursor of the state. */
  entry(row: readonly Cell[], is_detailed?: boolean): string;
  /** The part of an entry that is enough for a row below the cursor, as if it were not detailed. */
  below(entry: string): string;
  /** The rows of a state's boundary. Each is expected to appear once more. */
  earlier(state: StreamState | null): EarlierRows;
}

/** `isLast`: the row has the cursor of the state. There, one that changed comes again; below, its key decides. */
type Take = (row: readonly Cell[], isLast: boolean) => boolean;

interface EarlierRows {
  readonly isEmpty: boolean;
  /** Consumes the entry of a row. @returns false if the row is not among them */
  take: Take;
}

const unmasked = ({ columns }: ReadRequest, field: string) =>
  columns.findIndex((column) => column.masking === 'none' && column.field.path[0] === field);

/** Fields of the key that the request does not select, or masks. They are read besides. */
export function hiddenKey(request: ReadRequest): Field[] {
  return request.primary_key.flatMap(([name = '']) => {
    const field = request.stream.fields.find(({ path }) => path[0] === name);
    return field && unmasked(request, name) < 0 ? [field] : [];
  });
}

/** Rows have the cells of the columns, then those of the hidden key, then the cursor. */
export function rowIdentity(request: ReadRequest): RowIdentity {
  const { columns, primary_key } = request;
  const hidden = hiddenKey(request);
  const cursor = columns.length + hidden.length;
  const place = (name: string) => {
    const index = unmasked(request, name);
    return index >= 0 ? index : columns.length + hidden.findIndex(({ path }) => path[0] === name);
  };
  const names = primary_key.map(([name = '']) => name);
  const keyed = names.length > 0 ? [...names.map(place), cursor] : null;
  const plain = columns.flatMap(({ masking }, index) => (masking === 'none' ? [index] : []));
  const shape: Shape = {
    columns: digest(columns.map(({ field, masking }) => `${field.path[0]}:${masking}`)),
    key: keyed && names.join('\n'),
    cells: plain.map((index) => columns[index]!.field.path[0]!),
    types: plain.map((index) => columns[index]!.field.source_type),
  };
  const views: Views = {
    whole: (row) => digest([...row.slice(0, columns.length), row[cursor] ?? null]),
    key: keyed && ((row) => digest(keyed.map((index) => row[index] ?? null))),
    cells: (row, indexes) => indexes.map((index) => digest([row[index] ?? null]).slice(0, PART_LENGTH)).join(''),
  };
  return {
    shape,
    entry(row, is_detailed = true) {
      const short = views.key ? `${views.whole(row)}.${views.key(row)}` : views.whole(row);
      return is_detailed || !views.key ? `${short}.${views.cells(row, plain)}` : short;
    },
    below: (entry) => (keyed ? entry.slice(0, 2 * DIGEST_LENGTH + 1) : entry),
    earlier: (state) =>
      state?.shape
        ? earlierOf(state, { request, shape, views })
        : earlierRows(state, columns.length, (row) => [...row.slice(0, columns.length), row[cursor] ?? null]),
  };
}

/** Hashes of a row, or of parts of it. */
interface Views {
  whole(row: readonly Cell[]): string;
  key: ((row: readonly Cell[]) => string) | null;
  cells(row: readonly Cell[], indexes: readonly number[]): string;
}

/**
 * Compares by the most that both reads have: all cells, or the key and the cells of columns that neither masks and whose
 * type is the same. Below the cursor, the key decides.
 */
function earlierOf(
  state: StreamState,
  { request, shape, views }: { request: ReadRequest; shape: Shape; views: Views },
): EarlierRows {
  const was = state.shape as Shape;
  const entries = boundaryOf(state).map((entry) => entryParts(entry, was));
  const keyOf = was.key === shape.key ? views.key : null;
  const byKey =
    keyOf &&
    counted(
      entries.map(({ key }) => key),
      keyOf,
    );
  const isAlike = was.types === undefined || Bun.deepEquals(was.types, shape.types);
  if (was.columns === shape.columns && isAlike) {
    const byCells = counted(
      entries.map(({ whole }) => whole),
      views.whole,
    );
    return byKey ? either(byCells, byKey) : byCells;
  }
  const shared = was.cells.flatMap((name, at) => {
    const index = unmasked(request, name);
    const type = was.types?.[at];
    const isSame = index >= 0 && (type === undefined || type === request.columns[index]?.field.source_type);
    return isSame ? [{ at, index }] : [];
  });
  const indexes = shared.map(({ index }) => index);
  const pieces = (cells: string) =>
    shared.map(({ at }) => cells.slice(at * PART_LENGTH, (at + 1) * PART_LENGTH)).join('');
  const byCells = counted(
    entries.map(({ key, cells }) => `${keyOf ? key : ''}${pieces(cells)}`),
    (row) => `${keyOf?.(row) ?? ''}${views.cells(row, indexes)}`,
  );
  return byKey ? either(byCells, byKey) : byCells;
}

function entryParts(entry: string, { key }: Shape): { whole: string; key: string; cells: string } {
  const [whole = '', first = '', second = ''] = entry.split('.');
  return key === null ? { whole, key: '', cells: first } : { whole, key: first, cells: second };
}

export const boundaryOf = (state: StreamState | null): string[] =>
  Array.isArray(state?.boundary) ? state.boundary.filter((entry) => typeof entry === 'string') : [];

function counted(entries: readonly string[], entryOf: (row: readonly Cell[]) => string): EarlierRows {
  const counts = new Map<string, number>();
  for (const entry of entries) counts.set(entry, (counts.get(entry) ?? 0) + 1);
  return {
    get isEmpty() {
      return counts.size === 0;
    },
    take(row) {
      const entry = entryOf(row);
      const count = counts.get(entry);
      if (!count) return false;
      if (count === 1) counts.delete(entry);
      else counts.set(entry, count - 1);
      return true;
    },
  };
}

/** Both have all rows; one that changed is left over in the first. */
const either = (byCells: EarlierRows, byKey: EarlierRows): EarlierRows => ({
  get isEmpty() {
    return byKey.isEmpty;
  },
  take: (row, isLast) => (isLast ? byCells : byKey).take(row, isLast),
});

const DIGEST_LENGTH = 16;
const PART_LENGTH = 8;

/**
 * 64 bits. Each cell is prefixed with its length, so that different rows never give the same input. Of one text, which
 * takes a fifth of the time of a hash that is updated by cell.
 */
function digest(cells: readonly Cell[]): string {
  let text = '';
  for (const cell of cells) text += cell === null ? 'n;' : `${Buffer.byteLength(cell)};${cell}`;
  return Bun.SHA256.hash(text, 'hex').slice(0, DIGEST_LENGTH);
}
