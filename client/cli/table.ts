import { stripVTControlCharacters } from 'node:util';
import stringWidth from 'fast-string-width';
import type { Cli } from './context.ts';

const GAP = 2;
const MIN_COLUMN_WIDTH = 6;

/** Cell text by column heading. */
export type Columns<Row> = Record<string, (row: Row) => string>;

/** The columns that a terminal of 80 characters has room for, and those that `-o wide` adds. */
export interface ListColumns<Row> {
  columns: Columns<Row>;
  wide?: Columns<Row>;
}

/** Prints a table, or the unchanged response as data. */
export function showList<Row>(
  cli: Cli,
  rows: Row[],
  options: ListColumns<Row> & { json: boolean; empty: string },
): void {
  if (options.json) cli.document = rows;
  else if (rows.length === 0) cli.print(options.empty);
  else cli.print(table(cli, rows, options));
}

/** Aligned columns, truncated to the width of a terminal but never in a pipe or with `-o wide`. */
export function table<Row>(cli: Cli, rows: Row[], { columns: narrow, wide }: ListColumns<Row>): string {
  const isWide = cli.output.format === 'wide';
  const columns = isWide ? { ...narrow, ...wide } : narrow;
  const headings = Object.keys(columns);
  const cells = rows.map((row) => Object.values(columns).map((cell) => oneLine(cell(row))));
  const widths = headings.map((heading, at) => Math.max(heading.length, ...cells.map((line) => width(line[at]!))));
  const room = cli.process.stdout.isTTY && !isWide ? cli.process.stdout.columns || 80 : Number.POSITIVE_INFINITY;
  shrink(widths, room);
  const line = (texts: string[]) =>
    texts
      .map((text, at) => fit(text, widths[at]!))
      .join(' '.repeat(GAP))
      .trimEnd();
  return [cli.style('dim', line(headings.map((heading) => heading.toUpperCase()))), ...cells.map(line)].join('\n');
}

/** Prints one item in full, one labelled value per line. */
export function showThing(cli: Cli, thing: object, options: { json: boolean; lines: Record<string, string> }): void {
  if (options.json) {
    cli.document = thing;
    return;
  }
  const widest = Math.max(...Object.keys(options.lines).map((name) => name.length));
  for (const [name, value] of Object.entries(options.lines)) {
    cli.print(`${cli.style('dim', name.padEnd(widest))}  ${value.replaceAll('\n', `\n${' '.repeat(widest + 2)}`)}`);
  }
}

/** The beginning of a text of many lines, which `-o yaml` shows as a whole. */
export function firstLines(text: string, most: number): string {
  const lines = text.split('\n');
  const left_out = lines.length - most;
  if (left_out <= 1) return text;
  return [...lines.slice(0, most), `… ${left_out} more lines: -o yaml shows them`].join('\n');
}

const width = (text: string) => stringWidth(text);
const oneLine = (text: string) => text.replaceAll(/\s*\n\s*/g, ' ');

/** Narrows the widest column until the table fits or every column is at its minimum. */
function shrink(widths: number[], room: number): void {
  const total = () => widths.reduce((sum, one) => sum + one + GAP, -GAP);
  while (total() > room) {
    const widest = widths.indexOf(Math.max(...widths));
    if (widths[widest]! <= MIN_COLUMN_WIDTH) return;
    widths[widest]! -= 1;
  }
}

function fit(text: string, room: number): string {
  if (width(text) <= room) return text + ' '.repeat(room - width(text));
  const bare = stripVTControlCharacters(text);
  let cut = '';
  for (const letter of bare) {
    if (width(cut + letter) > room - 1) break;
    cut += letter;
  }
  return `${cut}…${' '.repeat(Math.max(0, room - 1 - width(cut)))}`;
}
