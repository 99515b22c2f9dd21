import { NORMALIZERS, TypeInference } from '../../../cells/normalizers.ts';
import type { Cell } from '../../../contract/connector.ts';
import { DataError, SchemaChangedError } from '../../../contract/errors.ts';
import type { SourceContext } from '../settings/files.ts';
import type { FoundFile } from '../stores/store.ts';
import { linesIn } from './csv/parser.ts';
import {
  BATCH_ROWS,
  type FileBatch,
  type FileColumn,
  type FileRequest,
  SAMPLE_BYTES,
  SAMPLE_ROWS,
  warnOfNewColumns,
} from './format.ts';

/** Whole records of a file whose cells are texts. */
export interface TextRecords {
  /** Names of the file's columns. */
  header: string[];
  rows: Cell[][];
  /** The line of the first row, counted from 1. */
  line: number;
  /** Size of the records as text. */
  bytes: number;
}

interface TextFile {
  file: FoundFile;
  records: AsyncIterable<TextRecords>;
  /** Code of the error for a row with more or fewer cells than the file has columns. */
  malformed: string;
}

/** The columns with the narrowest types that the first rows allow. */
export async function inferColumns(
  records: AsyncIterable<TextRecords>,
  dialect: FileColumn['dialect'],
): Promise<FileColumn[]> {
  const inferred = new Map<string, TypeInference>();
  let seen = 0;
  let bytesSeen = 0;
  for await (const { header, rows, bytes } of records) {
    for (const name of header) if (!inferred.has(name)) inferred.set(name, new TypeInference());
    const types = [...inferred.values()];
    for (const row of rows.slice(0, SAMPLE_ROWS - seen)) {
      if (row.length === header.length) for (const [at, cell] of row.entries()) types[at]?.add(cell);
    }
    seen += rows.length;
    bytesSeen += bytes;
    if (seen >= SAMPLE_ROWS || bytesSeen >= SAMPLE_BYTES) break;
  }
  const columns = [...inferred].map(([name, types]) => ({ name, type: types.result() }));
  return columns.map((column) => ({ ...column, source_type: null, dialect, nullable: true }));
}

/** The requested columns in their canonical form. @throws DataError, SchemaChangedError as `FileFormat.rows` */
export async function* typedRows(
  ctx: SourceContext,
  text: TextFile,
  { columns, known, skip }: FileRequest,
): AsyncGenerator<FileBatch> {
  let toSkip = skip;
  let first = true;
  for await (const found of text.records) {
    if (first) warnOfNewColumns(ctx, text.file, found.header, known);
    first = false;
    const rows = convert(text, found, columns);
    const wanted = rows.slice(Math.min(toSkip, rows.length));
    toSkip -= rows.length - wanted.length;
    for (let at = 0; at < wanted.length; at += BATCH_ROWS) {
      const part = wanted.slice(at, at + BATCH_ROWS);
      yield { rows: part, bytes: Math.ceil((found.bytes * part.length) / rows.length) };
    }
  }
}

/** Skips blank lines, unless there is only one column. */
function convert({ file, malformed }: TextFile, { header, rows, line }: TextRecords, columns: FileColumn[]): Cell[][] {
  const places = new Map(header.map((name, at) => [name, at]));
  const plan = columns.map(({ name, type }) => {
    const at = places.get(name);
    if (at === undefined) throw new SchemaChangedError('column_missing', `${file.name} has no column "${name}"`);
    return { at, name, type, normalize: NORMALIZERS[type] };
  });
  const width = header.length;
  const converted: Cell[][] = [];
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index] as Cell[];
    if (row.length !== width) {
      if (row.length === 1 && (row[0] === null || row[0] === '')) continue;
      const where = `line ${lineOf(rows, index + 1, line) - 1}, column ${Math.min(row.length, width) + 1}`;
      throw new DataError(malformed, `${file.name}, ${where}: ${row.length} cells instead of ${width}`);
    }
    const cells: Cell[] = new Array(plan.length);
    for (let to = 0; to < plan.length; to++) {
      const { at, normalize } = plan[to] as (typeof plan)[number];
      const cell = row[at] as Cell;
      cells[to] = normalize === undefined || cell === null ? cell : (normalize(cell) as Cell);
      if (cells[to] === undefined) throw misfit(file, plan[to] as Misfit, lineOf(rows, index + 1, line) - 1);
    }
    converted.push(cells);
  }
  return converted;
}

const lineOf = (rows: Cell[][], index: number, first: number) =>
  rows.slice(0, index).reduce((line, row) => line + linesOf(row), first);

/** Number of lines of a record; quoted cells can contain line ends. */
export const linesOf = (row: Cell[]) => row.reduce((lines, cell) => (cell === null ? lines : lines + linesIn(cell)), 1);

interface Misfit {
  name: string;
  type: string;
}

export const misfit = (file: FoundFile, { name, type }: Misfit, line: number) =>
  new DataError('value_does_not_fit', `${file.name}, line ${line}, column "${name}": the value is not a valid ${type}`);
