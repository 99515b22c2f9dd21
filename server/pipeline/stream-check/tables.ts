import type { NameRules } from '../../connectors/contract/connector.ts';
import { nameProblem } from '../../connectors/contract/names.ts';
import { isReserved } from '../../connectors/contract/reserved-names.ts';
import type { SettingFinding } from './finding.ts';

/** A table that a stream writes to. */
export interface WrittenTable {
  stream_name: string;
  /** Where the table is: the schema of the connection, or the default of the destination. */
  schema: string;
  table: string;
  /** Other streams may write to the table. */
  shared: boolean;
}

/** A table that a stream of the connection reads, in the database that the connection writes to. */
export type ReadTable = Pick<WrittenTable, 'stream_name' | 'schema' | 'table'>;

export interface ForeignTable extends WrittenTable {
  connection_id: string;
  connection_name: string;
}

/** A finding about a stream of the connection, by its position in the list. */
export interface TableFinding extends SettingFinding {
  stream: number;
  /** What the error shows besides. */
  context: { destination_table: string; connection_id?: string };
}

interface OtherTables {
  names: NameRules;
  foreign: readonly ForeignTable[];
  read: readonly ReadTable[];
  isChecked(at: number): boolean;
}

/**
 * Streams of one table would mix or erase each other's rows, or those of the source. `own` are the selected streams of a
 * connection: those that `isChecked` accepts are compared with all others, of this connection and of `foreign` ones, and
 * with the tables that the connection reads. Pure.
 */
export function checkTables(
  own: readonly WrittenTable[],
  { names, foreign, read, isChecked }: OtherTables,
): TableFinding[] {
  const key = ({ schema, table }: Pick<WrittenTable, 'schema' | 'table'>) =>
    JSON.stringify([names.fold(schema), names.fold(table)]);
  const byTable = Map.groupBy(own.keys(), (at) => key(own[at]!));
  const others = Map.groupBy(foreign, key);
  const sources = new Map(read.map((one) => [key(one), one.stream_name]));
  return [...own.entries()].flatMap(([stream, one]): TableFinding[] => {
    if (!isChecked(stream)) return [];
    const context = { destination_table: one.table };
    const problem = nameProblem(names, 'table', one.table);
    if (problem) return [{ ...problem, place: ['destination_table'], stream, context }];
    if (isReserved(one.table)) {
      const message = `"${one.table}" is a table of the service itself. Use another table`;
      return [{ code: 'reserved_name', message, place: ['destination_table'], stream, context }];
    }
    const found = { code: 'duplicate_destination_table' as const, place: ['destination_table'], stream };
    const source = sources.get(key(one));
    if (source !== undefined) {
      const message = `"${source}" is read from the table "${full(one)}" itself. Use another table, prefix or schema`;
      return [{ ...found, context, message }];
    }
    if (one.shared) return [];
    const sibling = byTable
      .get(key(one))
      ?.find((at) => at !== stream && (at < stream || !isChecked(at) || own[at]!.shared));
    if (sibling !== undefined) {
      const { stream_name } = own[sibling]!;
      const message = `"${stream_name}" is written to "${full(own[sibling]!)}" as well. ${ADVICE}`;
      return [{ ...found, context, message }];
    }
    const [other] = others.get(key(one)) ?? [];
    if (!other) return [];
    const { connection_id, connection_name, stream_name } = other;
    const message = `the connection "${connection_name}" writes "${stream_name}" to "${full(other)}" as well. ${ADVICE}`;
    return [{ ...found, context: { ...context, connection_id }, message }];
  });
}

const full = ({ schema, table }: Pick<WrittenTable, 'schema' | 'table'>) =>
  schema === '' ? table : `${schema}.${table}`;

const ADVICE = 'Use another table, prefix or schema, or set shared_destination_table to let both write to it';
