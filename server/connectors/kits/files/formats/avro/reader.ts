import type { Cell } from '../../../../contract/connector.ts';
import { DataError, SchemaChangedError } from '../../../../contract/errors.ts';
import type { SourceContext } from '../../settings/files.ts';
import type { FoundFile } from '../../stores/store.ts';
import { BATCH_ROWS, type FileBatch, type FileColumn, type FileRequest, warnOfNewColumns } from '../format.ts';
import { type AvroBlock, openAvro } from './container.ts';
import { type AvroColumn, columnOf } from './decode.ts';
import type { AvroType } from './schema.ts';

const BATCH_BYTES = 1_000_000;

interface NamedColumn extends AvroColumn {
  name: string;
}

/** The fields of the records; a file of another type has one column. */
const columnsOf = (schema: AvroType): NamedColumn[] =>
  schema.kind === 'record'
    ? schema.fields.map(({ name, type }) => ({ name, ...columnOf(type) }))
    : [{ name: 'value', ...columnOf(schema) }];

export async function avroColumns(ctx: SourceContext, file: FoundFile): Promise<FileColumn[]> {
  const { schema, close } = await openAvro(file, ctx.signal);
  await close();
  return columnsOf(schema).map(({ name, type, nullable }) => ({
    name,
    type,
    nullable,
    source_type: null,
    dialect: null,
  }));
}

export async function* avroRows(ctx: SourceContext, file: FoundFile, request: FileRequest): AsyncGenerator<FileBatch> {
  const { schema, blocks, close } = await openAvro(file, ctx.signal);
  try {
    const columns = columnsOf(schema);
    const names = columns.map(({ name }) => name);
    warnOfNewColumns(ctx, file, names, request.known);
    const places = request.columns.map(({ name, type }) => {
      const at = names.indexOf(name);
      if (at < 0) throw new SchemaChangedError('column_missing', `${file.name} has no column "${name}"`);
      if (fits(columns[at]!.type, type)) return at;
      const text = `${file.name}, column "${name}": its type is ${columns[at]!.type}, not ${type}`;
      throw new DataError('value_does_not_fit', `${text}. Refresh the schema`);
    });
    let toSkip = request.skip;
    for await (const block of blocks) {
      ctx.signal.throwIfAborted();
      const rows = rowsOf(file, columns, block);
      const wanted = toSkip > 0 ? rows.slice(toSkip) : rows;
      toSkip -= rows.length - wanted.length;
      yield* batches(wanted, places);
    }
  } finally {
    await close();
  }
}

const fits = (type: string, wanted: string) =>
  type === wanted || wanted === 'string' || (wanted === 'number' && type === 'integer');

function rowsOf(file: FoundFile, columns: NamedColumn[], { count, first, bytes }: AvroBlock): Cell[][] {
  const rows: Cell[][] = [];
  for (let at = 0; at < count; at++) {
    let column = '';
    try {
      rows.push(
        columns.map((one) => {
          column = one.name;
          return one.decode(bytes);
        }),
      );
    } catch (error) {
      if (!(error instanceof RangeError || error instanceof DataError)) throw error;
      const place = `${file.name}, record ${first + at}, column "${column}"`;
      throw new DataError('malformed_avro', `${place}: ${error.message}`, { cause: error });
    }
  }
  if (bytes.left === 0) return rows;
  throw new DataError('malformed_avro', `${file.name}: bytes are left after record ${first + count - 1}`);
}

function* batches(rows: Cell[][], places: number[]): Generator<FileBatch> {
  let batch: Cell[][] = [];
  let size = 0;
  for (const row of rows) {
    const cells = places.map((at) => row[at] ?? null);
    for (const cell of cells) size += cell?.length ?? 1;
    batch.push(cells);
    if (batch.length < BATCH_ROWS && size < BATCH_BYTES) continue;
    yield { rows: batch, bytes: size };
    [batch, size] = [[], 0];
  }
  if (batch.length > 0) yield { rows: batch, bytes: size };
}
