import type { AccountConnectorRow } from '../../db/schema/index.ts';
import type { AnyDestination, Cell, LogicalType, WriteTarget } from '../connectors/contract/connector.ts';
import type { Deps } from '../deps.ts';
import type { SecretUse } from '../connector-runtime/secret-uses.ts';
import { presentable, withConnector } from '../connector-runtime/account-connector-calls.ts';
import type { ExportDocument } from './document.ts';
import { csvRows, type ExportValue } from './formats.ts';

const SCHEMA = '_metadata';
const WRITE_MS = 10 * 60_000;
const BATCH_ROWS = 5000;

const TYPES: Record<string, LogicalType> = {
  nullable: 'boolean',
  is_primary_key: 'boolean',
  is_cursor: 'boolean',
  excluded: 'boolean',
  connections: 'integer',
  rows_loaded: 'integer',
  discovered_at: 'timestamp_tz',
  last_succeeded_at: 'timestamp_tz',
};

/**
 * Writes an export into a destination. Each source has one table, which a new export replaces. Returns its name.
 * @throws ConnectorError
 */
export async function writeExport(
  deps: Deps,
  destination: AccountConnectorRow,
  input: { task_id: string; document: ExportDocument; use: SecretUse },
): Promise<string> {
  const { document, task_id } = input;
  const rows = csvRows(document);
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const target = targetOf(deps, { document, task_id, columns });
  try {
    await withConnector(deps, destination, { ms: WRITE_MS, use: input.use }, async ({ connector, ctx }) => {
      const writer = await (connector as AnyDestination).open(ctx, target);
      try {
        for (let start = 0; start < rows.length; start += BATCH_ROWS) {
          const cells = rows
            .slice(start, start + BATCH_ROWS)
            .map((row) => columns.map((name) => cellOf(name, row[name])));
          await writer.write({ rows: cells, bytes: cells.flat().reduce((sum, cell) => sum + (cell?.length ?? 0), 0) });
        }
        await writer.finish(null);
      } catch (error) {
        await writer.abort();
        throw error;
      }
    });
  } catch (error) {
    throw presentable(deps, destination, error);
  }
  return `${SCHEMA}.${target.table}`;
}

function targetOf(
  deps: Deps,
  { document, task_id, columns }: { document: ExportDocument; task_id: string; columns: string[] },
): WriteTarget {
  const { id, name } = document.account_connector;
  const slug = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .slice(0, 40);
  return {
    schema: SCHEMA,
    // The id keeps apart sources whose names differ only in characters that a table name cannot have.
    table: `${slug}_${id.slice(-6)}`,
    columns: columns.map((column) => ({
      name: column,
      type: TYPES[column] ?? 'string',
      source_type: null,
      dialect: null,
      nullable: true,
    })),
    primary_key: [],
    cursor_column: null,
    mode: 'overwrite',
    connection_id: id,
    stream_id: id,
    connection_run_id: task_id,
    stream_run_id: task_id,
    fence: deps.now().getTime(),
    state_version: 0,
  };
}

function cellOf(column: string, value: ExportValue): Cell {
  if (value == null) return null;
  const text = String(value);
  return TYPES[column] === 'timestamp_tz' ? text.replace('T', ' ').replace('Z', '+00') : text;
}
