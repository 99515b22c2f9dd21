import type { Cell } from '../../../../contract/connector.ts';
import type { FileSourceConfig } from '../../settings/files.ts';
import type { FixedColumn } from '../../settings/fixed-width.ts';

/** How to cut a line into cells. */
export interface Layout {
  columns: FixedColumn[];
  /** Number of characters that a line needs. */
  length: number;
  /** Whether a column goes up to the end of the line. */
  is_open: boolean;
  trims: { start: boolean; end: boolean };
  allow_short_lines: boolean;
  null_value: string;
}

/** A line that is too short or too long. */
export class LineError extends Error {}

const SPACE = 32;
const SURROGATE = /[\uD800-\uDFFF]/;
/** What stands for a blank line among rows of cells. */
const BLANK_LINE: Cell[] = [null];

type Settings = Pick<FileSourceConfig, 'trim_spaces' | 'allow_short_lines' | 'null_value'>;

export const layoutOf = (columns: FixedColumn[], { trim_spaces, allow_short_lines, null_value }: Settings): Layout => ({
  columns,
  length: Math.max(...columns.map(({ from, to }) => to ?? from)),
  is_open: columns.some(({ to }) => to === null),
  trims: { start: ['both', 'start'].includes(trim_spaces), end: ['both', 'end'].includes(trim_spaces) },
  allow_short_lines,
  null_value,
});

/** @param line can end with a carriage return. @throws LineError */
export function cellsOf(line: string, layout: Layout): Cell[] {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line;
  if (text === '') return BLANK_LINE;
  // A character beyond the first plane has two code units, and counts once.
  const places = SURROGATE.test(text) ? placesOf(text) : null;
  const length = places ? places.length - 1 : text.length;
  const { columns, trims, null_value } = layout;
  if (length !== layout.length) refuseLength(text, layout, { length, places });
  const cells = new Array<Cell>(columns.length);
  for (let at = 0; at < columns.length; at++) {
    const column = columns[at] as FixedColumn;
    let from = Math.min(column.from, length);
    let to = column.to === null ? length : Math.min(column.to, length);
    if (places) [from, to] = [places[from] as number, places[to] as number];
    if (trims.end) while (to > from && text.charCodeAt(to - 1) === SPACE) to--;
    if (trims.start) while (from < to && text.charCodeAt(from) === SPACE) from++;
    const cell = text.slice(from, to);
    cells[at] = cell === '' || cell === null_value ? null : cell;
  }
  return cells;
}

/** Where each character starts, and where the last one ends. */
function placesOf(text: string): number[] {
  const places = [0];
  let place = 0;
  for (const character of text) places.push((place += character.length));
  return places;
}

function refuseLength(
  text: string,
  layout: Layout,
  { length, places }: { length: number; places: number[] | null },
): void {
  if (length < layout.length && !layout.allow_short_lines) throw shortLine(length, layout);
  if (length < layout.length || layout.is_open) return;
  for (let at = places ? (places[layout.length] as number) : layout.length; at < text.length; at++) {
    if (text.charCodeAt(at) !== SPACE) throw longLine(length, layout);
  }
}

function shortLine(length: number, { columns }: Layout): LineError {
  const cut = columns.find(({ from, to }) => (to ?? from) > length) as FixedColumn;
  return new LineError(
    `the line has ${length} characters, and the column "${cut.name}" needs ${cut.to ?? cut.from}. If trailing spaces ` +
      'were removed, allow short lines',
  );
}

const longLine = (length: number, layout: Layout) =>
  new LineError(
    `the line has ${length} characters, and the columns end at ${layout.length}. Add a column for the others, such as ` +
      `rest:${layout.length + 1}-`,
  );
