import { and, eq } from 'drizzle-orm';
import { type ConnectionRow, connectionStreams } from '../../../../db/schema/index.ts';
import { actorOf, type Ctx } from '../../../api/procedure.ts';
import { asUpstreamError } from '../../../api/upstream-error.ts';
import { advanceDestination, sequencesOfSource } from './connector-calls.ts';
import type { AnySource, SourceSequence, WantedSequence } from '../../../connectors/contract/connector.ts';
import { planTransfer, tableName } from '../../../pipeline/transfer-plan.ts';
import { badRequest } from '../../../platform/errors.ts';
import { findConnection } from '../../access/connection.ts';
import { readCatalog } from '../catalog.ts';
import { streamKey } from '../streams/selection.ts';
import { connectorPair } from '../streams/update.ts';
import type { AdvancedSequenceSchema, AdvanceSequencesRequest } from './schema.ts';

/** @throws ApiError 400 `cut_over_unsupported`, and as `asUpstreamError` */
export async function advanceSequences(
  ctx: Ctx,
  input: { connection_id: string; request: AdvanceSequencesRequest | null },
): Promise<AdvancedSequenceSchema[]> {
  const connection = await findConnection(ctx, input.connection_id);
  const { source, destination, source_connector, destination_connector } = await connectorPair(ctx, connection);
  const without = [source_connector.sequences, destination_connector.advanceSequences].indexOf(undefined);
  if (without >= 0) {
    const { display_name } = [source_connector, destination_connector][without]!;
    throw badRequest('cut_over_unsupported', `${display_name} has no sequences that can be compared`);
  }
  const { tables, columnOf } = await placesOf(ctx, connection, source_connector);
  const actor = actorOf(ctx.principal);
  try {
    const found = await sequencesOfSource(ctx.deps, source, { tables, actor });
    const wanted = found.flatMap((one) => wantedOf(one, columnOf) ?? []);
    const sequences = wanted.map((one) => one.wanted);
    const { dry_run = false } = input.request ?? {};
    const advanced = await advanceDestination(ctx.deps, destination, {
      sequences,
      dry_run,
      schema: connection.destination_schema,
      actor,
    });
    return wanted.map(({ from, wanted: { columns } }, at) => ({
      source_sequence: from.namespace === null ? from.name : `${from.namespace}.${from.name}`,
      columns: columns.map(({ table, column }) => `${table}.${column}`),
      source_value: from.last,
      destination_sequence: advanced[at]!.sequence,
      value_before: advanced[at]!.before,
      value_after: advanced[at]!.after,
      statement: advanced[at]!.statement,
    }));
  } catch (error) {
    throw asUpstreamError(error);
  }
}

type Column = SourceSequence['columns'][number];
type ColumnOf = (column: Column) => WantedSequence['columns'];

/** Null: none of its columns arrive at the destination. */
function wantedOf(from: SourceSequence, columnOf: ColumnOf) {
  const columns = from.columns.flatMap(columnOf);
  if (from.columns.length > 0 && columns.length === 0) return null;
  const { name, last, increment } = from;
  return { from, wanted: { name, columns, last, increment } };
}

/** Where the columns of the selected streams arrive. Masked and mapped values are not those of a sequence. */
async function placesOf(ctx: Ctx, connection: ConnectionRow, source: AnySource) {
  const own = and(eq(connectionStreams.connection_id, connection.id), eq(connectionStreams.selected, true));
  const tables = await ctx.db.select().from(connectionStreams).where(own);
  const catalog = new Map((await readCatalog(ctx, connection.source_id)).map((one) => [streamKey(one), one]));
  const places = new Map<string, WantedSequence['columns'][number]>();
  for (const stream of tables) {
    const schema = catalog.get(streamKey(stream));
    if (!schema) continue;
    const table = tableName(connection, stream);
    for (const { field, target, pushed, masking, mapping } of planTransfer({ source, schema, stream }).columns) {
      if (pushed !== 'none' || masking !== 'none' || mapping) continue;
      places.set(JSON.stringify([stream.namespace, stream.name, field.path[0]]), { table, column: target.name });
    }
  }
  const columnOf: ColumnOf = ({ namespace, table, column }) => {
    const place = places.get(JSON.stringify([namespace, table, column]));
    return place ? [place] : [];
  };
  return { tables, columnOf };
}
