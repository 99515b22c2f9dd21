import type { Cell, LogicalType } from '../../../../contract/connector.ts';
import { DataError } from '../../../../contract/errors.ts';
import { jsonCell, jsonType, widenType } from '../../../../cells/json-cells.ts';
import { repeatedKey } from '../../../../cells/json-keys.ts';
import { shortened } from '../../../../cells/value-gate.ts';
import { lineGroups } from '../line-groups.ts';
import { JSON_LIMITS, tooComplexAt } from '../../../../cells/json-limits.ts';
import { jsonErrorAt, parseExactly } from '../../../../cells/json-line.ts';
import {
  BATCH_ROWS,
  type FileBatch,
  type FileColumn,
  type FileRequest,
  SAMPLE_BYTES,
  SAMPLE_ROWS,
  warnOfNewColumns,
} from '../format.ts';
import type { SourceContext } from '../../settings/files.ts';
import type { FoundFile } from '../../stores/store.ts';

export async function jsonlColumns(ctx: SourceContext, file: FoundFile): Promise<FileColumn[]> {
  const types = new Map<string, LogicalType | null>();
  let seen = 0;
  let bytesSeen = 0;
  for await (const { lines, line, bytes } of lineGroups(ctx, file)) {
    for (const [at, text] of lines.entries()) {
      if (text.trim() === '') continue;
      for (const [name, value] of Object.entries(objectOf(file, text, line + at))) {
        types.set(name, widenType(types.get(name) ?? null, jsonType(value)));
      }
      if (++seen >= SAMPLE_ROWS) break;
    }
    bytesSeen += bytes;
    if (seen >= SAMPLE_ROWS || bytesSeen >= SAMPLE_BYTES) break;
  }
  const columns = [...types].map(([name, type]) => ({ name, type: type ?? 'string' }));
  return columns.map((column) => ({ ...column, source_type: null, dialect: null, nullable: true }));
}

export async function* jsonlRows(
  ctx: SourceContext,
  file: FoundFile,
  { columns, known, skip }: FileRequest,
): AsyncGenerator<FileBatch> {
  const at = new Map(columns.map(({ name }, index) => [name, index]));
  const met = new Set(known);
  const unknown = (name: string) => {
    if (!met.has(name)) warnOfNewColumns(ctx, file, [name], met);
    met.add(name);
  };
  let toSkip = skip;
  for await (const { lines, line, bytes } of lineGroups(ctx, file)) {
    let rows: Cell[][] = [];
    const share = bytes / lines.length;
    for (const [index, text] of lines.entries()) {
      if (text.trim() === '' || toSkip-- > 0) continue;
      rows.push(rowOf({ file, line: line + index, columns, at, unknown }, text));
      if (rows.length < BATCH_ROWS) continue;
      yield { rows, bytes: Math.ceil(rows.length * share) };
      rows = [];
    }
    if (rows.length > 0) yield { rows, bytes: Math.ceil(rows.length * share) };
  }
}

function objectOf(file: FoundFile, text: string, line: number): Record<string, unknown> {
  let value: unknown;
  if (tooComplexAt(text) !== null) {
    const message = `${file.name}, line ${line}: the record has more than ${JSON_LIMITS}. Split it into several records`;
    throw new DataError('json_limit_exceeded', message);
  }
  try {
    value = parseExactly(text);
  } catch (error) {
    const where = `line ${line}, column ${jsonErrorAt(text) + 1}`;
    throw new DataError('malformed_json', `${file.name}, ${where}: invalid JSON`, { cause: error });
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const repeated = repeatedKey(text, value);
    if (repeated === null) return value as Record<string, unknown>;
    const message = `an object has the key ${shortened(repeated)} twice, and only one of its values could be loaded`;
    throw new DataError('malformed_json', `${file.name}, line ${line}: ${message}`);
  }
  throw new DataError('malformed_json', `${file.name}, line ${line}, column 1: expected a JSON object`);
}

interface Place {
  file: FoundFile;
  line: number;
  columns: FileColumn[];
  at: Map<string, number>;
  unknown(name: string): void;
}

function rowOf({ file, line, columns, at, unknown }: Place, text: string): Cell[] {
  const row: Cell[] = new Array(columns.length).fill(null);
  const object = objectOf(file, text, line);
  for (const name in object) {
    const index = at.get(name);
    if (index === undefined) {
      unknown(name);
      continue;
    }
    const { type } = columns[index] as FileColumn;
    const cell = jsonCell(object[name], type);
    if (cell === undefined) {
      const where = `${file.name}, line ${line}, column "${name}"`;
      throw new DataError('value_does_not_fit', `${where}: the value is not a valid ${type}`);
    }
    row[index] = cell;
  }
  return row;
}
