import type { RowComparer, TableOfStream } from '../contract/connector.ts';
import { rowEncoder } from './body.ts';
import { objectFor, parseDefinition } from './definition.ts';
import { urlFor } from './service.ts';
import type { HttpDestinationConfig } from './settings.ts';

/** What rows are compared by: the values that a request would contain, and the requests themselves. */
export function identifyRows(
  config: HttpDestinationConfig,
  { table, columns, primary_key }: Pick<TableOfStream, 'table' | 'columns' | 'primary_key'>,
): RowComparer {
  const encode = rowEncoder(columns);
  const indexes = primary_key.map((name) => columns.findIndex((column) => column.name === name));
  // Credentials may be in the query, and their change moves no rows.
  const { origin, pathname } = urlFor(config, table);
  const { method, format, rows_key, envelope, definition } = config;
  const object = definition === undefined ? undefined : objectFor(definitionOf(definition), table);
  const written = object
    ? [object.upsert ?? null, object.create ?? null, object.update ?? null]
    : [method, format, rows_key, envelope];
  // Cells are compared as they arrive, so that their types are part of what is written.
  const types = columns.map(({ name, type, source_type, dialect, from }) => [
    name,
    type,
    source_type,
    dialect,
    from ?? null,
  ]);
  const requests = Bun.SHA256.hash(JSON.stringify([written, types]), 'hex');
  return {
    place: Bun.SHA256.hash(JSON.stringify([origin, pathname, table, primary_key]), 'hex'),
    key: (row) => {
      const cells = indexes.map((index) => row[index] ?? null);
      return cells.includes(null) ? null : JSON.stringify(cells);
    },
    content: (row) => requests + encode(row),
  };
}

/** A definition that was checked when it was saved. */
export function definitionOf(text: string) {
  const { definition, problem } = parseDefinition(text);
  if (!definition) throw new Error(problem);
  return definition;
}
