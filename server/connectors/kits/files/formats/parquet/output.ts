import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Writable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import type { ValueType } from '../../../../cells/casts.ts';
import { valueType } from '../../../../cells/value-types.ts';
import type { TargetColumn } from '../../../../contract/connector.ts';
import { DataError } from '../../../../contract/errors.ts';
import { binarySql, type DuckDb, identifier, literal, momentSql, openDuckDb } from '../../../duckdb/instance.ts';
import { pathOf, unnamedFile } from '../../stores/local-copy.ts';
import type { OutputFile } from '../format.ts';
import type { Draft } from '../../stores/store.ts';
import { TextTables } from './text-tables.ts';

/** Collects the cells as text in DuckDB, which spills to disk, and casts them when the file is closed. */
export async function openParquet(draft: Draft, columns: TargetColumn[]): Promise<OutputFile> {
  const spill = draft.scratch;
  const duck = await openDuckDb(spill);
  const tables = new TextTables(duck.connection, columns.length);
  let open = true;
  const end = async () => {
    if (open) duck.close();
    open = false;
    await rm(spill, { recursive: true, force: true });
  };
  return {
    write: (rows) => tables.add(rows),
    async close() {
      try {
        const values = columns.map((column, at) => castOf(column, `c${at}`));
        await copyToParquet(duck, { values, columns, draft, ...(await tables.end()) });
      } finally {
        await end();
      }
      return draft.keep();
    },
    async discard() {
      await end();
      await draft.discard();
    },
  };
}

interface Copying {
  /** SQL expressions, one per column. */
  values: string[];
  from: string;
  /** Largest number of rows of a row group. Absent: DuckDB's default. */
  group_rows?: number;
  columns: TargetColumn[];
  draft: Draft;
}

/** @throws DataError for a value that does not fit */
export async function copyToParquet(
  duck: DuckDb,
  { values, from, group_rows, columns, draft }: Copying,
): Promise<void> {
  const select = columns.map(({ name }, at) => `${values[at]} AS ${identifier(name)}`).join(', ');
  const copy = draft.path === null ? await unnamedFile(dirname(draft.scratch)) : null;
  try {
    await duck.connection.run(
      `COPY (SELECT ${select} FROM ${from}) TO ${literal(copy ? pathOf(copy) : String(draft.path))}
        (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false${group_rows ? `, ROW_GROUP_SIZE ${group_rows}` : ''})`,
    );
    if (copy) await pipeline(createReadStream('', { fd: copy.fd, start: 0, autoClose: false }), draft.stream);
    else await ended(draft.stream);
  } catch (error) {
    if (!REFUSED_VALUE.test(String(error))) throw error;
    const [reason] = String(error).split('\n');
    throw new DataError('value_does_not_fit', `A value does not fit its Parquet column: ${reason}`, { cause: error });
  } finally {
    await copy?.close();
  }
}

/** What DuckDB says of a value that a column cannot hold, and of one that is too large for its memory. */
const REFUSED_VALUE = /conversion|cast|convert|malformed|invalid input|out of (?:range|memory)|hex/i;

async function ended(stream: Writable): Promise<void> {
  stream.end();
  await finished(stream);
}

export function castOf({ type, source_type, dialect }: TargetColumn, column: string): string {
  const cast = (to: string) => `CAST(${column} AS ${to})`;
  switch (type) {
    case 'integer':
      return cast('BIGINT');
    case 'number':
      return cast(numberType(source_type ?? ''));
    case 'boolean':
    case 'time':
      return cast(type.toUpperCase());
    case 'date':
    case 'timestamp':
      return momentSql(column, type.toUpperCase());
    case 'timestamp_tz':
      return momentSql(column, 'TIMESTAMPTZ');
    case 'json':
      return cast('JSON');
    case 'array':
      return dialect === 'postgres' ? column : cast('JSON');
    case 'binary':
      return binarySql(column);
    default:
      return source_type?.toLowerCase() === 'uuid' ? cast('UUID') : column;
  }
}

/** Columns that would round what the text of a number has. */
export function limitedNumber({ type, source_type }: TargetColumn): { holds: ValueType; shown: string } | null {
  if (type !== 'number') return null;
  const shown = numberType(source_type ?? '');
  if (!/^(DECIMAL|FLOAT|REAL|DOUBLE)/.test(shown)) return null;
  return { holds: valueType({ type, source_type: shown, dialect: 'duckdb' }), shown };
}

/** A number without a declared precision stays text: a double would lose digits. */
function numberType(declared: string): string {
  const decimal = /^(?:numeric|decimal)\((\d+), ?(\d+)\)$/i.exec(declared);
  // In PostgreSQL the scale can exceed the precision, in DuckDB it cannot.
  const fits = decimal && Number(decimal[1]) <= 38 && Number(decimal[2]) <= Number(decimal[1]);
  if (fits) return `DECIMAL(${decimal[1]}, ${decimal[2]})`;
  if (/^(?:real|float4|float)$/i.test(declared)) return declared === 'FLOAT' ? 'FLOAT' : 'REAL';
  if (/^(?:double precision|float8|double)$/i.test(declared)) return 'DOUBLE';
  // Parquet would store a HUGEINT as a double.
  return declared === 'UBIGINT' ? declared : 'VARCHAR';
}
