import type { AccountConnectorRow } from '../../../../db/schema/index.ts';
import { foreignTables, storeOf } from '../../../catalog/written-tables.ts';
import type { AnyDestination } from '../../../connectors/contract/connector.ts';
import { namesOf } from '../../../pipeline/stream-check/columns.ts';
import { checkTables, type ReadTable } from '../../../pipeline/stream-check/tables.ts';
import { tableName } from '../../../pipeline/transfer-plan.ts';
import { badRequest } from '../../../platform/errors.ts';
import type { Ctx } from '../../../api/procedure.ts';
import { type PlannedStream, planStreams, type SelectionInput } from './selection.ts';
import type { StreamFinding } from './finding.ts';

/** Where the streams of a connection are written. */
export interface WrittenTo {
  /** Null: the connection does not exist yet. */
  connection_id: string | null;
  source: AccountConnectorRow;
  destination: AccountConnectorRow;
  destination_schema: string | null;
  /** Also compares the tables of streams that the request does not name: their names change. */
  renamed?: boolean;
}

/**
 * The streams of a connection, as planStreams decides, and everything that is wrong with the ones that change. The caller
 * holds `lockTables` of the account, so that no other connection takes one of their tables meanwhile.
 */
export async function checkedPlan(
  ctx: Ctx,
  input: SelectionInput,
  where: WrittenTo,
): Promise<{ planned: PlannedStream[]; findings: StreamFinding[] }> {
  const { planned, findings } = planStreams(input);
  return { planned, findings: [...findings, ...(await findSharedTables(ctx, planned, { ...input, ...where }))] };
}

const MAX_FINDINGS = 100;

/** @throws ApiError 400 with the code of the first finding, its `field` and `stream_name`, and all `findings`. */
export function refuseFindings(findings: readonly StreamFinding[]): void {
  const [first] = findings;
  if (!first) return;
  throw badRequest(first.code, `${first.stream_name}: ${first.message}`, {
    field: first.field,
    stream_name: first.stream_name,
    ...first.context,
    findings: findings.slice(0, MAX_FINDINGS).map(({ context: _context, ...finding }) => finding),
  });
}

/** Streams that would be written to a table of another stream or connection, or to one that cannot exist. */
export async function findSharedTables(
  ctx: Ctx,
  planned: readonly Pick<PlannedStream, 'name' | 'namespace' | 'settings' | 'field' | 'isChecked'>[],
  where: WrittenTo & { table_prefix: string; destination_connector: AnyDestination },
): Promise<StreamFinding[]> {
  const { destination_connector, table_prefix, destination } = where;
  const store = storeOf(destination_connector, destination);
  const selected = planned.filter(({ settings }) => settings.selected);
  const schema = where.destination_schema ?? store?.schema ?? '';
  const own = selected.map(({ name, settings }) => ({
    stream_name: name,
    schema,
    table: tableName({ table_prefix }, { name, ...settings }),
    shared: settings.shared_destination_table,
  }));
  const isChecked = (at: number) => where.renamed === true || selected[at]!.isChecked;
  const names = namesOf(destination_connector);
  const checked = own.filter((_, at) => isChecked(at)).map(({ table }) => table);
  const { account_id } = ctx.principal;
  const foreign = store ? await foreignTables(ctx.db, { ...where, account_id, store: store.store }, checked) : [];
  const read = readsIts(store?.store, where) ? selected.flatMap(readTable) : [];
  return checkTables(own, { names, foreign, read, isChecked }).map(({ stream, code, message, place, context }) => {
    const { name, field } = selected[stream]!;
    return { code, message, field: [field, ...place].join('.'), stream_name: name, context };
  });
}

/** Whether source and destination are one database. Only equal addresses show it. */
const readsIts = (
  store: string | undefined,
  { source, destination, destination_connector }: WrittenTo & { destination_connector: AnyDestination },
): boolean =>
  store !== undefined &&
  source.connector_name === destination.connector_name &&
  storeOf(destination_connector, source)?.store === store;

/** Queries and files have no table. */
const readTable = ({
  name,
  namespace,
  settings,
}: Pick<PlannedStream, 'name' | 'namespace' | 'settings'>): ReadTable[] =>
  namespace === null || settings.dataset_sql !== null ? [] : [{ stream_name: name, schema: namespace, table: name }];
