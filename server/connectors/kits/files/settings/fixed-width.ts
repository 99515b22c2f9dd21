import { z } from 'zod';
import '../../../contract/parameters.ts';

const shown = { visible_when: { parameter: 'format', equals: ['fixed_width'] } };

export const fixedWidthSettings = {
  fixed_width_columns: z
    .array(z.string().max(300))
    .max(5000)
    .default([])
    .meta({
      label: 'Columns',
      directs_secrets: false,
      description:
        'name:1-10 for the characters 1 to 10 of each line, name:10 for the 10 characters after the column before, name:41- for all from 41',
      placeholder: 'id:1-10',
      group: 'stream',
      ...shown,
    }),
  skip_lines: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(0)
    .meta({
      label: 'Lines to skip',
      directs_secrets: false,
      description: 'Lines before the first row of each file, such as titles',
      group: 'stream',
      ...shown,
    }),
  trim_spaces: z
    .enum(['both', 'start', 'end', 'none'])
    .default('both')
    .meta({
      label: 'Trim spaces',
      directs_secrets: false,
      value_labels: { both: 'On both sides', start: 'At the start', end: 'At the end', none: 'Keep all' },
      group: 'stream',
      ...shown,
    }),
  allow_short_lines: z
    .boolean()
    .default(false)
    .meta({
      label: 'Allow short lines',
      directs_secrets: false,
      description: 'For files whose lines have lost their trailing spaces',
      group: 'stream',
      ...shown,
    }),
};

/** Characters of a line, counted from 0. */
export interface FixedColumn {
  name: string;
  from: number;
  /** The character after the last one; null: up to the end of the line. */
  to: number | null;
}

const COLUMN = /^(.+):(?:(\d{1,7})-(\d{1,7})?|(\d{1,7}))$/s;

/** @throws Error with a message for the user, if an entry is malformed or a name repeats */
export function fixedColumnsOf(entries: string[]): FixedColumn[] {
  const columns: FixedColumn[] = [];
  const names = new Set<string>();
  for (const entry of entries) {
    const column = fixedColumn(entry, columns.at(-1));
    if (names.has(column.name)) throw new Error(`Two columns are named "${column.name}"`);
    names.add(column.name);
    columns.push(column);
  }
  return columns;
}

function fixedColumn(entry: string, before: FixedColumn | undefined): FixedColumn {
  const [, name = '', first, last, width] = COLUMN.exec(entry) ?? [];
  if (name === '' || name.includes('\0')) {
    throw new Error(`"${entry}" is not a column. Enter name:1-10, name:10 or name:41-`);
  }
  const from = first === undefined ? (before ? before.to : 0) : Number(first) - 1;
  if (from === null) throw new Error(`"${entry}" follows a column that ends with the line. Enter its first character`);
  const to = width !== undefined ? from + Number(width) : last === undefined ? null : Number(last);
  if (from < 0) throw new Error(`"${entry}": the first character of a line is 1`);
  if (to !== null && to <= from) throw new Error(`"${entry}": the column has no characters`);
  return { name, from, to };
}

type Given = { format?: string | undefined; fixed_width_columns?: string[] | undefined };

/** Reports columns that are missing or malformed. */
export function requireColumns({ format, fixed_width_columns: entries = [] }: Given, ctx: z.core.$RefinementCtx): void {
  const path = ['fixed_width_columns'];
  if (format === 'fixed_width' && entries.length === 0) {
    // The issue that zod raises for a required field: it counts as missing, not as invalid.
    ctx.addIssue({ code: 'invalid_type', expected: 'array', input: undefined, path });
  }
  try {
    fixedColumnsOf(entries);
  } catch (error) {
    ctx.addIssue({ code: 'custom', message: (error as Error).message, path });
  }
}
