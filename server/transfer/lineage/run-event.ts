import { eq, inArray } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  catalogStreams,
  type ConnectionRow,
  connections,
  connectionStreams,
  type RunRow,
  type StreamRow,
  type StreamRunRow,
  streamRuns,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { StreamSchema } from '../../connectors/contract/connector.ts';
import { SchemaChangedError } from '../../connectors/contract/errors.ts';
import { findConnector } from '../../connectors/registry.ts';
import { fieldName, type PlannedColumn, planTransfer, tableName } from '../../pipeline/transfer-plan.ts';
import type { RunStatus } from '../../pipeline/run-states.ts';
import { loadSides } from '../../runs/load-sides.ts';

const SPEC = 'https://openlineage.io/spec';

/** `ABORT`: the run was stopped. A run that lost some of its streams failed. */
export type LineageType = 'START' | 'COMPLETE' | 'FAIL' | 'ABORT';

const ENDS: Partial<Record<RunStatus, LineageType>> = {
  succeeded: 'COMPLETE',
  partially_succeeded: 'FAIL',
  failed: 'FAIL',
  stopped: 'ABORT',
};

/** The event for the end of a run; null while it is live. */
export const endOf = ({ status }: RunRow): LineageType | null => ENDS[status] ?? null;

interface Place {
  namespace: string;
  name: string;
}

/** One stream of the run, from its dataset to its table. */
interface Flow {
  input: Place;
  output: Place;
  columns: PlannedColumn[];
  stream_run: StreamRunRow;
}

/** A RunEvent of OpenLineage: the run, and what it reads and writes with columns. An end names what was written. */
export async function runEvent(
  db: Db,
  run: RunRow,
  { type, producer, namespace }: { type: LineageType; producer: string; namespace: string },
): Promise<object> {
  const [connection] = await db.select().from(connections).where(eq(connections.id, run.connection_id));
  if (!connection) throw new Error(`connection of run ${run.id} does not exist`);
  const flows = (await flowsOf(db, run, connection)).filter(({ stream_run }) => type === 'START' || wrote(stream_run));
  const facet = (path: string, content: object) => ({ _producer: producer, _schemaURL: `${SPEC}/${path}`, ...content });
  const error = run.error && { errorMessage: errorFacet(facet, run.error.message) };
  return {
    eventType: type,
    eventTime: (type === 'START' ? run.started_at : run.finished_at) ?? run.queued_at,
    producer,
    schemaURL: `${SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent`,
    run: { runId: run.id, facets: { ...(type === 'FAIL' && error) } },
    job: { namespace: `${namespace}/${run.account_id}`, name: connection.name },
    inputs: flows.map((flow) => ({ ...flow.input, facets: { schema: schemaFacet(facet, inputFields(flow)) } })),
    outputs: flows.map((flow) => ({
      ...flow.output,
      facets: { schema: schemaFacet(facet, outputFields(flow)), columnLineage: lineageFacet(facet, flow) },
      ...(type !== 'START' && { outputFacets: { outputStatistics: statisticsFacet(facet, flow.stream_run) } }),
    })),
  };
}

/** Whether rows of the stream were committed, also if it failed later. */
const wrote = ({ status, rows_loaded }: StreamRunRow) => status === 'succeeded' || rows_loaded > 0;

type Facet = (path: string, content: object) => object;

const errorFacet = (facet: Facet, message: string) =>
  facet('facets/1-0-1/ErrorMessageRunFacet.json', { message, programmingLanguage: 'TypeScript' });

const schemaFacet = (facet: Facet, fields: { name: string; type: string }[]) =>
  facet('facets/1-2-0/SchemaDatasetFacet.json', { fields });

const inputFields = ({ columns }: Flow) =>
  columns.map(({ field }) => ({ name: fieldName(field.path), type: field.source_type ?? field.type }));

const outputFields = ({ columns }: Flow) => columns.map(({ target }) => ({ name: target.name, type: target.type }));

const lineageFacet = (facet: Facet, { columns, input }: Flow) =>
  facet('facets/1-2-0/ColumnLineageDatasetFacet.json', {
    fields: Object.fromEntries(
      columns.map(({ field, target }) => [target.name, { inputFields: [{ ...input, field: fieldName(field.path) }] }]),
    ),
  });

const statisticsFacet = (facet: Facet, { rows_loaded, bytes_loaded }: StreamRunRow) =>
  facet('facets/1-0-2/OutputStatisticsOutputDatasetFacet.json', { rowCount: rows_loaded, size: bytes_loaded });

async function flowsOf(db: Db, run: RunRow, connection: ConnectionRow): Promise<Flow[]> {
  const { source, destination } = await loadSides(db, connection);
  const ended = await db.select().from(streamRuns).where(eq(streamRuns.connection_run_id, run.id));
  const ids = ended.map(({ stream_id }) => stream_id);
  const streams =
    ids.length === 0 ? [] : await db.select().from(connectionStreams).where(inArray(connectionStreams.id, ids));
  const catalog = await db.select().from(catalogStreams).where(eq(catalogStreams.account_connector_id, source.id));
  return ended.flatMap((stream_run) => {
    const stream = streams.find(({ id }) => id === stream_run.stream_id);
    if (!stream) return [];
    const known = catalog.find(({ name, namespace }) => name === stream.name && namespace === stream.namespace);
    const schema = (known?.definition ?? null) as StreamSchema | null;
    const table = stream_run.destination_table ?? tableName(connection, stream);
    const output = placeOf(destination, connection.destination_schema ?? stream.namespace, table);
    const input = placeOf(source, stream.namespace, stream.name);
    return [{ input, output, columns: columnsOf(source, schema, stream), stream_run }];
  });
}

/** None for a custom query, and for a stream that no longer fits the catalog. */
function columnsOf(row: AccountConnectorRow, schema: StreamSchema | null, stream: StreamRow): PlannedColumn[] {
  const source = findConnector('source', row.connector_name);
  if (!schema || !source || stream.dataset_sql) return [];
  try {
    return planTransfer({ source, schema, stream }).columns;
  } catch (error) {
    if (error instanceof SchemaChangedError) return [];
    throw error;
  }
}

/** As the naming rules of OpenLineage have it: a server with its port, then database, schema and table. */
function placeOf(row: AccountConnectorRow, schema: string | null, table: string): Place {
  const { host, port, database } = row.parameters;
  const authority = typeof host === 'string' ? `${host}${typeof port === 'number' ? `:${port}` : ''}` : row.id;
  const parts = [typeof database === 'string' ? database : null, schema, table];
  return {
    namespace: `${row.connector_name}://${authority}`,
    name: parts.filter((part) => part !== null && part !== '').join('.'),
  };
}
