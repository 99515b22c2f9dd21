import type { Cell } from '../define.ts';

const ESCAPED = /\\(.)/gs;
const UNESCAPED: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };
const NEEDS_ESCAPE = /[\\\n\r\t\0]/;
const TO_ESCAPE = /[\\\n\r\t\0]/g;
const ESCAPES: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\0': '' };

/** Rows of whole lines of COPY text. */
export function decodeCopyText(text: string): Cell[][] {
  const lines = text.split('\n');
  // Each line ends in a line feed, so the last piece is empty.
  lines.pop();
  const rows = lines as unknown as Cell[][];
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index]!;
    const cells: Cell[] = line.split('\t');
    // Also NULL is written with a backslash: without one the line is as it stands.
    if (line.includes('\\')) unescapeCells(cells);
    rows[index] = cells;
  }
  return rows;
}

function unescapeCells(cells: Cell[]) {
  for (let index = 0; index < cells.length; index++) {
    const cell = cells[index]!;
    if (!cell.includes('\\')) continue;
    cells[index] = cell === '\\N' ? null : cell.replace(ESCAPED, (_, character: string) => UNESCAPED[character] ?? character);
  }
}

/** Lines of COPY text. `onNul` is told when a NUL character had to be taken out: PostgreSQL's text cannot hold one. */
export function encodeCopyText(rows: readonly Cell[][], onNul: () => void): string {
  let text = '';
  for (const row of rows) {
    for (let index = 0; index < row.length; index++) {
      const cell = row[index]!;
      if (index > 0) text += '\t';
      if (cell === null) text += '\\N';
      else if (NEEDS_ESCAPE.test(cell)) {
        if (cell.includes('\0')) onNul();
        text += cell.replace(TO_ESCAPE, (character) => ESCAPES[character]!);
      } else text += cell;
    }
    text += '\n';
  }
  return text;
}
