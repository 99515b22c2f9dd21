import type { Cell } from '../../../../contract/connector.ts';
import { ConfigurationError, DataError, SchemaChangedError } from '../../../../contract/errors.ts';
import { NORMALIZERS, TypeInference } from '../../../../cells/normalizers.ts';
import { checkRecordLength, isWorthParsing, textChunks } from '../file-chunks.ts';
import { packable } from '../unpack.ts';
import { CsvSyntaxError, linesIn, parseCsv } from './parser.ts';
import {
  BATCH_ROWS,
  type FileBatch,
  type FileColumn,
  type FileRequest,
  SAMPLE_BYTES,
  SAMPLE_ROWS,
  warnOfNewColumns,
} from '../format.ts';
import type { FoundFile } from '../../stores/store.ts';
import type { CsvDialect, SourceContext } from '../../settings/files.ts';

/** Whole records of a file. `line` is the line of the first one, counted from 1; `bytes` is their size as text. */
interface Records {
  header: string[];
  rows: Cell[][];
  line: number;
  bytes: number;
}

/** The dialect of fields from CSV files. It marks columns that can be copied as bytes. */
export const CSV_DIALECT = 'csv';

export async function csvColumns(ctx: SourceContext, file: FoundFile): Promise<FileColumn[]> {
  const inferred = new Map<string, TypeInference>();
  let seen = 0;
  let bytesSeen = 0;
  for await (const { header, rows, bytes } of records(ctx, file)) {
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
  return columns.map((column) => ({ ...column, source_type: null, dialect: CSV_DIALECT, nullable: true }));
}

export async function* csvRows(
  ctx: SourceContext,
  file: FoundFile,
  { columns, known, skip }: FileRequest,
): AsyncGenerator<FileBatch> {
  let toSkip = skip;
  let first = true;
  for await (const found of records(ctx, file)) {
    if (first) warnOfNewColumns(ctx, file, found.header, known);
    first = false;
    const rows = convert(file, found, columns);
    const wanted = rows.slice(Math.min(toSkip, rows.length));
    toSkip -= rows.length - wanted.length;
    for (let at = 0; at < wanted.length; at += BATCH_ROWS) {
      const part = wanted.slice(at, at + BATCH_ROWS);
      yield { rows: part, bytes: Math.ceil((found.bytes * part.length) / rows.length) };
    }
  }
}

async function* records(ctx: SourceContext, file: FoundFile): AsyncGenerator<Records> {
  const dialect = dialectOf(ctx, file);
  let header: string[] | null = null;
  let pending = '';
  let line = 1;
  const take = (text: string): Records | null => {
    const { rows, rest, inner_lines } = parseAt(file, text, dialect, line);
    pending = text.slice(rest);
    const first = line;
    line += rows.length + inner_lines;
    if (header || rows.length === 0) return header ? { header, rows, line: first, bytes: rest } : null;
    header = headerOf(file, rows[0] as Cell[], dialect);
    const body = dialect.header ? rows.slice(1) : rows;
    const bodyLine = dialect.header ? first + linesOf(rows[0] as Cell[]) : first;
    return { header, rows: body, line: bodyLine, bytes: rest };
  };
  let looked = 0;
  for await (const chunk of textChunks(file, ctx.config.encoding, ctx.signal)) {
    pending += chunk;
    if (!isWorthParsing({ held: pending.length, looked, ends: chunk.includes('\n') || chunk.includes('\r') })) continue;
    const found = take(pending);
    looked = found?.bytes ? 0 : pending.length;
    if (found) yield found;
    checkRecordLength(file, pending.length, line);
  }
  if (pending === '') return;
  const last = take(pending.endsWith('\n') ? pending : `${pending}\n`);
  if (pending !== '') throw new DataError('malformed_csv', `${file.name}, line ${line}: a quote is not closed`);
  if (last) yield last;
}

const TSV = packable('tsv');

export const dialectOf = ({ config }: SourceContext, file: FoundFile): CsvDialect =>
  TSV.test(file.name) && config.delimiter === ',' ? { ...config, delimiter: '\t' } : config;

function parseAt(file: FoundFile, text: string, dialect: CsvDialect, line: number) {
  try {
    return parseCsv(text, dialect);
  } catch (error) {
    throw error instanceof CsvSyntaxError ? malformed(file, line, error) : error;
  }
}

/** @param line the line at which the parsed text starts */
export const malformed = (file: FoundFile, line: number, { lines, cell, message }: CsvSyntaxError) =>
  new DataError('malformed_csv', `${file.name}, line ${line + lines}, column ${cell + 1}: ${message}`);

/** The names of a file's columns. An empty file has none. */
export async function headerOfFile(ctx: SourceContext, file: FoundFile): Promise<string[]> {
  for await (const { header } of records(ctx, file)) return header;
  return [];
}

/** Number of lines of a record; quoted cells can contain line ends. */
const linesOf = (row: Cell[]) => row.reduce((lines, cell) => (cell === null ? lines : lines + linesIn(cell)), 1);

function headerOf(file: FoundFile, row: Cell[], dialect: CsvDialect): string[] {
  const names = row.map((name, at) => (dialect.header && name ? name : `column_${at + 1}`));
  const met = new Set<string>();
  const repeated = names.find((name) => met.size === met.add(name).size);
  const broken = names.find((name) => name.includes('\0'));
  if (broken !== undefined) {
    const column = names.indexOf(broken) + 1;
    throw new DataError('malformed_csv', `${file.name}, line 1, column ${column}: the name contains the character NUL`);
  }
  if (repeated === undefined) return names;
  throw new ConfigurationError('duplicate_column', `${file.name}: two columns are named "${repeated}"`);
}

/** Converts rows to the requested columns and their canonical form. Skips blank lines, unless there is only one column. */
function convert(file: FoundFile, { header, rows, line }: Records, columns: FileColumn[]): Cell[][] {
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
      const message = `${row.length} cells instead of ${width}`;
      const lines = lineOf(rows, index + 1, 0) - 1;
      throw malformed(file, line, new CsvSyntaxError(message, lines, Math.min(row.length, width)));
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

interface Misfit {
  name: string;
  type: string;
}

export const misfit = (file: FoundFile, { name, type }: Misfit, line: number) =>
  new DataError('value_does_not_fit', `${file.name}, line ${line}, column "${name}": the value is not a valid ${type}`);
