import { NORMALIZERS } from '../../../../cells/normalizers.ts';
import type { Cell, LogicalType } from '../../../../contract/connector.ts';
import { ConfigurationError, DataError, SchemaChangedError } from '../../../../contract/errors.ts';
import type { SourceContext } from '../../settings/files.ts';
import type { FoundFile } from '../../stores/store.ts';
import {
  BATCH_ROWS,
  type FileBatch,
  type FileColumn,
  type FileRequest,
  SAMPLE_BYTES,
  SAMPLE_ROWS,
  warnOfNewColumns,
} from '../format.ts';
import { cellName, type SheetRow, sheetRows, type SheetValue } from './sheet-rows.ts';
import { openSheet, type OpenSheet } from './workbook.ts';

const BATCH_BYTES = 1_000_000;

export async function xlsxColumns(ctx: SourceContext, file: FoundFile): Promise<FileColumn[]> {
  const types = new Map<string, LogicalType | null>();
  let seen = 0;
  let bytes = 0;
  await withSheet(ctx, file, async (sheet) => {
    for await (const { rows, names } of body(ctx, sheet)) {
      for (const name of names.given) if (!types.has(name)) types.set(name, null);
      for (const { values } of rows.slice(0, SAMPLE_ROWS - seen)) {
        for (const [at, value] of values.entries()) {
          if (!value) continue;
          bytes += value.text.length;
          const name = names.at(at);
          const known = types.get(name) ?? null;
          types.set(name, value.type === 'error' ? known : wider(known, value.type));
        }
      }
      seen += rows.length;
      if (seen >= SAMPLE_ROWS || bytes >= SAMPLE_BYTES) return;
    }
  });
  const columns = [...types].map(([name, type]) => ({ name, type: type ?? 'string' }));
  return columns.map((column) => ({ ...column, source_type: null, dialect: null, nullable: true }));
}

/** The narrowest type of both; a mix of others is text. */
function wider(one: LogicalType | null, other: LogicalType): LogicalType {
  if (one === null || one === other) return other;
  const both = new Set([one, other]);
  if (both.has('integer') && both.has('number')) return 'number';
  return both.has('date') && both.has('timestamp') ? 'timestamp' : 'string';
}

export async function* xlsxRows(ctx: SourceContext, file: FoundFile, request: FileRequest): AsyncGenerator<FileBatch> {
  const sheet = await openSheet(ctx, file);
  const reading = new Reading(ctx, file, sheet, request);
  try {
    for await (const { rows, names } of body(ctx, sheet)) yield* reading.batches(rows, names);
    reading.warnOfErrors();
  } finally {
    await sheet.close();
  }
}

async function withSheet(ctx: SourceContext, file: FoundFile, work: (sheet: OpenSheet) => Promise<void>) {
  const sheet = await openSheet(ctx, file);
  try {
    await work(sheet);
  } finally {
    await sheet.close();
  }
}

/** Names of columns: of the first row with values, and `column_5` beyond it. */
class Names {
  constructor(
    readonly given: string[],
    private readonly place: string,
  ) {
    const repeated = given.find((name, at) => given.indexOf(name) !== at);
    if (repeated === undefined) return;
    throw new ConfigurationError('duplicate_column', `${this.place}: two columns are named "${repeated}"`);
  }

  at = (column: number): string => this.given[column] ?? `column_${column + 1}`;

  /** -1: the sheet cannot have it. */
  indexOf(name: string): number {
    const given = this.given.indexOf(name);
    const beyond = Number(/^column_([1-9]\d{0,4})$/.exec(name)?.[1] ?? 0) - 1;
    return given < 0 && beyond >= this.given.length ? beyond : given;
  }
}

interface Body {
  rows: SheetRow[];
  names: Names;
}

async function* body(ctx: SourceContext, sheet: OpenSheet): AsyncGenerator<Body> {
  let names = ctx.config.header ? null : new Names([], sheet.place);
  for await (let rows of sheetRows(sheet)) {
    ctx.signal.throwIfAborted();
    if (names === null) {
      const [first, ...rest] = rows;
      const header = Array.from(first?.values ?? [], (value, at) => value?.text ?? `column_${at + 1}`);
      names = new Names(header, sheet.place);
      rows = rest;
    }
    yield { rows, names };
  }
}

interface PlannedColumn {
  name: string;
  type: LogicalType;
  at: number;
}

/** What one read of a sheet keeps between its pieces. */
class Reading {
  #toSkip: number;
  #plan: PlannedColumn[] | null = null;
  #met: Set<string>;
  #errors = 0;
  #firstError = '';

  constructor(
    private readonly ctx: SourceContext,
    private readonly file: FoundFile,
    private readonly sheet: OpenSheet,
    private readonly request: FileRequest,
  ) {
    this.#toSkip = request.skip;
    this.#met = new Set(request.known);
  }

  *batches(rows: SheetRow[], names: Names): Generator<FileBatch> {
    this.#plan ??= this.#planned(names);
    let batch: Cell[][] = [];
    let bytes = 0;
    for (const row of rows) {
      this.#noteColumns(row, names);
      const skipped = this.#toSkip-- > 0;
      if (skipped) continue;
      const cells = this.#cells(row);
      for (const cell of cells) bytes += cell?.length ?? 1;
      batch.push(cells);
      if (batch.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
      yield { rows: batch, bytes };
      [batch, bytes] = [[], 0];
    }
    if (batch.length > 0) yield { rows: batch, bytes };
  }

  warnOfErrors(): void {
    if (this.#errors === 0) return;
    const text = `${this.sheet.place}: ${this.#errors} cells hold a formula that failed or was never calculated, such as ${this.#firstError}, and were read as NULL`;
    this.ctx.warn('error_cells', text);
  }

  #planned(names: Names): PlannedColumn[] {
    warnOfNewColumns(this.ctx, this.file, names.given, this.#met);
    for (const name of names.given) this.#met.add(name);
    return this.request.columns.map(({ name, type }) => {
      const at = names.indexOf(name);
      if (at < 0) throw new SchemaChangedError('column_missing', `${this.sheet.place} has no column "${name}"`);
      return { name, type, at };
    });
  }

  /** Cells beside the named columns. */
  #noteColumns({ values }: SheetRow, names: Names): void {
    for (let at = names.given.length; at < values.length; at++) {
      const name = names.at(at);
      if (!values[at] || this.#met.has(name)) continue;
      warnOfNewColumns(this.ctx, this.file, [name], this.#met);
      this.#met.add(name);
    }
  }

  #cells({ number, values }: SheetRow): Cell[] {
    return (this.#plan ?? []).map((column) => {
      const value = values[column.at];
      if (!value) return null;
      if (value.type === 'error') return this.#error(value, cellName(column.at, number));
      const text = fitting(value, column.type);
      if (text !== undefined) return text;
      const place = `${this.sheet.place}, cell ${cellName(column.at, number)}, column "${column.name}"`;
      throw new DataError('value_does_not_fit', `${place}: the value is not a valid ${column.type}`);
    });
  }

  #error({ text }: SheetValue, cell: string): null {
    this.#errors += 1;
    this.#firstError ||= `${text} in ${cell}`;
    return null;
  }
}

/** The value as a text of the type; undefined if it is of another type. */
function fitting({ type, text }: SheetValue, wanted: LogicalType): string | undefined {
  if (type === wanted || wanted === 'string') return text;
  if (wanted === 'number' && type === 'integer') return text;
  if (wanted === 'timestamp' && type === 'date') return `${text} 00:00:00`;
  return type === 'string' ? NORMALIZERS[wanted]?.(text) : undefined;
}
