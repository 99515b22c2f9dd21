import type { Cell } from '../../../../contract/connector.ts';
import { ConfigurationError, DataError } from '../../../../contract/errors.ts';
import { checkRecordLength, isWorthParsing, textChunks } from '../file-chunks.ts';
import type { FileBatch, FileColumn, FileRequest } from '../format.ts';
import { inferColumns, linesOf, type TextRecords, typedRows } from '../text-rows.ts';
import { packable } from '../unpack.ts';
import { CsvSyntaxError, parseCsv } from './parser.ts';
import type { FoundFile } from '../../stores/store.ts';
import type { CsvDialect, SourceContext } from '../../settings/files.ts';

/** The dialect of fields from CSV files. It marks columns that can be copied as bytes. */
export const CSV_DIALECT = 'csv';
const MALFORMED = 'malformed_csv';

export const csvColumns = (ctx: SourceContext, file: FoundFile): Promise<FileColumn[]> =>
  inferColumns(records(ctx, file), CSV_DIALECT);

export const csvRows = (ctx: SourceContext, file: FoundFile, request: FileRequest): AsyncGenerator<FileBatch> =>
  typedRows(ctx, { file, records: records(ctx, file), malformed: MALFORMED }, request);

async function* records(ctx: SourceContext, file: FoundFile): AsyncGenerator<TextRecords> {
  const dialect = dialectOf(ctx, file);
  let header: string[] | null = null;
  let pending = '';
  let line = 1;
  const take = (text: string): TextRecords | null => {
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
  if (pending !== '') throw new DataError(MALFORMED, `${file.name}, line ${line}: a quote is not closed`);
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
  new DataError(MALFORMED, `${file.name}, line ${line + lines}, column ${cell + 1}: ${message}`);

/** The names of a file's columns. An empty file has none. */
export async function headerOfFile(ctx: SourceContext, file: FoundFile): Promise<string[]> {
  for await (const { header } of records(ctx, file)) return header;
  return [];
}

function headerOf(file: FoundFile, row: Cell[], dialect: CsvDialect): string[] {
  const names = row.map((name, at) => (dialect.header && name ? name : `column_${at + 1}`));
  const met = new Set<string>();
  const repeated = names.find((name) => met.size === met.add(name).size);
  const broken = names.find((name) => name.includes('\0'));
  if (broken !== undefined) {
    const column = names.indexOf(broken) + 1;
    throw new DataError(MALFORMED, `${file.name}, line 1, column ${column}: the name contains the character NUL`);
  }
  if (repeated === undefined) return names;
  throw new ConfigurationError('duplicate_column', `${file.name}: two columns are named "${repeated}"`);
}
