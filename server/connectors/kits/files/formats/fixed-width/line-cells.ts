import type { Cell } from '../../../../contract/connector.ts';
import type { FileSourceConfig } from '../../settings/files.ts';
import type { FixedColumn } from '../../settings/fixed-width.ts';

/** How to cut a line into cells. */
interface Layout {
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
const BOTH = { start: true, end: true };
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
  const characters = SURROGATE.test(text) ? Array.from(text) : null;
  const length = characters?.length ?? text.length;
  const part = (from: number, to: number) => characters?.slice(from, to).join('') ?? text.slice(from, to);
  if (length < layout.length && !layout.allow_short_lines) throw shortLine(length, layout);
  if (length > layout.length && !layout.is_open && trimmed(part(layout.length, length), BOTH) !== '') {
    throw longLine(length, layout);
  }
  return layout.columns.map(({ from, to }) => {
    const cell = trimmed(part(from, to ?? length), layout.trims);
    return cell === '' || cell === layout.null_value ? null : cell;
  });
}

function trimmed(text: string, { start, end }: Layout['trims']): string {
  let from = 0;
  let to = text.length;
  if (end) while (to > 0 && text.charCodeAt(to - 1) === SPACE) to--;
  if (start) while (from < to && text.charCodeAt(from) === SPACE) from++;
  return text.slice(from, to);
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
