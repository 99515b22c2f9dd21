import { NORMALIZERS } from '../../../../cells/normalizers.ts';
import type { Cell } from '../../../../contract/connector.ts';
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
import type { XmlValue } from '../../../xml/tree.ts';
import { arranged, ColumnSample, layoutOf, type XmlLayout } from './layout.ts';
import { findRecordPath } from './record-path.ts';
import { RecordReader, stepsOf, type XmlRecord } from './records.ts';

export async function xmlColumns(
  ctx: SourceContext,
  file: FoundFile,
  known: readonly FileColumn[],
): Promise<FileColumn[]> {
  const path = ctx.config.record_element ?? recordOf(known) ?? (await findRecordPath(ctx, file));
  if (path === null) return [];
  const layouts = new Map(known.map((column) => [column.name, layoutOf(column)]));
  const samples = new Map<string, ColumnSample>();
  const reader = new RecordReader(file, stepsOf(path));
  let [seen, size] = [0, 0];
  for await (const { records, bytes } of reader.groups(ctx)) {
    for (const { parts } of records.slice(0, SAMPLE_ROWS - seen)) {
      for (const name in parts) {
        let sample = samples.get(name);
        if (!sample) samples.set(name, (sample = new ColumnSample(structureOf(layouts.get(name)))));
        sample.add(parts[name]!);
      }
    }
    seen += records.length;
    size += bytes;
    if (seen >= SAMPLE_ROWS || size >= SAMPLE_BYTES) break;
  }
  if (seen === 0 && known.length === 0) checkReached(file, path, reader);
  return [...samples].map(([name, sample]) => sample.column(name, path));
}

const recordOf = (columns: readonly FileColumn[]): string | null =>
  columns.map(layoutOf).find((layout) => layout !== null)?.record ?? null;

const structureOf = (layout: XmlLayout | null | undefined): XmlLayout => ({
  ...(layout?.list && { list: true }),
  ...(layout?.parts && { parts: layout.parts }),
});

/** A document without records is fine if it has the elements around them, and nothing else there. */
function checkReached(file: FoundFile, path: string, { reached, siblings }: RecordReader): void {
  const steps = stepsOf(path);
  if (reached === steps.length - 1 && siblings.size === 0 && reached > 0) return;
  const [place, found] = [steps.slice(0, reached).join('/'), [...siblings].join(', ')];
  const instead = reached === 0 ? `Its root is ${found}` : `${place} has ${found || 'no elements'}`;
  throw new ConfigurationError('record_element_missing', `${file.name} has no element ${path}. ${instead}`);
}

export async function* xmlRows(ctx: SourceContext, file: FoundFile, request: FileRequest): AsyncGenerator<FileBatch> {
  const path = recordOf(request.columns) ?? ctx.config.record_element ?? (await findRecordPath(ctx, file));
  if (path === null) return;
  const { record_element: wanted = path } = ctx.config;
  if (stepsOf(wanted).join('/') !== stepsOf(path).join('/')) {
    const text = `The schema was read from the elements ${path}, and the record element is now ${wanted}`;
    throw new SchemaChangedError('record_element_changed', `${text}. Refresh the schema`);
  }
  const reader = new RecordReader(file, stepsOf(path));
  const rows = new RowMaker(ctx, file, request);
  let toSkip = request.skip;
  for await (const { records, bytes } of reader.groups(ctx)) {
    const left = records.slice(Math.min(toSkip, records.length));
    toSkip -= records.length - left.length;
    for (let at = 0; at < left.length; at += BATCH_ROWS) {
      const part = left.slice(at, at + BATCH_ROWS);
      yield { rows: part.map(rows.rowOf), bytes: Math.ceil((bytes * part.length) / records.length) };
    }
  }
  // Discovery has seen the path, so the elements around the records may be without any.
  if (reader.reached < Math.max(stepsOf(path).length - 1, 1)) checkReached(file, path, reader);
}

interface PlannedColumn extends FileColumn {
  index: number;
  structure: XmlLayout;
  is_nested: boolean;
  normalize: ((text: string) => string | undefined) | undefined;
}

/** Turns records into rows. */
class RowMaker {
  #columns: Map<string, PlannedColumn>;
  #met: Set<string>;
  #beyond = new Set<string>();

  constructor(
    private readonly ctx: SourceContext,
    private readonly file: FoundFile,
    { columns, known }: FileRequest,
  ) {
    this.#met = new Set(known);
    this.#columns = new Map(
      columns.map((column, index) => {
        const is_nested = column.type === 'array' || column.type === 'json';
        const structure = structureOf(layoutOf(column));
        return [column.name, { ...column, index, structure, is_nested, normalize: NORMALIZERS[column.type] }];
      }),
    );
  }

  rowOf = ({ parts, line }: XmlRecord): Cell[] => {
    const row: Cell[] = new Array(this.#columns.size).fill(null);
    for (const name in parts) {
      const column = this.#columns.get(name);
      if (column) row[column.index] = this.#cell(column, parts[name]!, line);
      else this.#warnOfNew(name);
    }
    return row;
  };

  #cell(column: PlannedColumn, value: XmlValue | XmlValue[], line: number): Cell {
    const { normalize, is_nested, structure } = column;
    if (value === null && !structure.list) return null;
    if (is_nested) return JSON.stringify(arranged(value, structure, () => this.#warnOfStructure(column.name)));
    if (typeof value === 'string') {
      const cell = normalize ? normalize(value) : value;
      if (cell !== undefined) return cell;
    } else if (column.type === 'string') {
      this.#warnOfStructure(column.name);
      return JSON.stringify(value);
    }
    const place = `${this.file.name}, line ${line}, column "${column.name}"`;
    const is = typeof value === 'string' ? 'the value is' : 'the element repeats or has elements, and is';
    throw new DataError('value_does_not_fit', `${place}: ${is} not a valid ${column.type}`);
  }

  #warnOfNew(name: string): void {
    if (this.#met.has(name)) return;
    this.#met.add(name);
    warnOfNewColumns(this.ctx, this.file, [name], new Set());
  }

  /** Once a column. */
  #warnOfStructure(name: string): void {
    if (this.#beyond.has(name)) return;
    this.#beyond.add(name);
    const text = `${this.file.name}: the elements "${name}" repeat or have parts where the schema knows none, so they are JSON of another form in some rows. Refresh the schema`;
    this.ctx.warn('new_structure', text);
  }
}
