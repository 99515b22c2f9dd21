import { and, eq, isNull } from 'drizzle-orm';
import { accountConnectors, catalogStreams, type ConnectionRow, type StreamRow } from '../../../db/schema/index.ts';
import type { AnyDestination, StreamSchema } from '../../connectors/contract/connector.ts';
import { findConnector } from '../../connectors/registry.ts';
import { discoveredStream } from '../../catalog/store.ts';
import { applyOverrides, type Overrides, withCatalogChoices } from '../../pipeline/overrides.ts';
import { checkEffects } from '../../pipeline/stream-check/check.ts';
import { settingsOf } from '../../pipeline/stream-check/settings.ts';
import { isWindowed, type RunParameters } from '../../pipeline/custom-run/plan.ts';
import { type PlanNotice, planStream, type StreamPlan } from '../../pipeline/custom-run/streams.ts';
import { tableName } from '../../pipeline/transfer-plan.ts';
import { tablesOfOthers, windowColumn } from '../../transfer/replace-window.ts';
import { badRequest } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { selectedStreams } from '../../runs/streams.ts';

interface ResolvedStreams {
  streams: StreamPlan[];
  blockers: PlanNotice[];
}

/**
 * The streams of a custom run, by namespace and name, with the way in which each is read and written.
 * @throws ApiError 400 `unknown_stream` with the ids and names that match no selected stream of the connection.
 */
export async function resolveStreams(
  ctx: Ctx,
  connection: ConnectionRow,
  parameters: RunParameters,
): Promise<ResolvedStreams> {
  const named = namedStreams((await selectedStreams(ctx.db, [connection.id])).get(connection.id) ?? [], parameters);
  const [catalog, destination, foreign] = await Promise.all([
    catalogOf(ctx, connection),
    destinationOf(ctx, connection),
    tablesOfOthers(ctx.db, connection),
  ]);
  const supported = destination?.supported_destination_sync_modes ?? [];
  const { mode, clear_destination } = parameters;
  const how = { supported, mode, clear_destination, windowed: isWindowed(parameters) };
  const streams = named.map((stream) => {
    const found = catalog.get(keyOf(stream));
    const shared = foreign.has(tableName(connection, stream));
    const replaceable = destination?.replaces_windows === true && !shared && found?.windowColumn(stream) != null;
    return planStream({ ...how, stream, schema: found?.schema ?? null, replaceable });
  });
  const unclearable = clear_destination && !supported.includes('overwrite');
  const unsound = streams.flatMap((one) => {
    const found = catalog.get(keyOf(one.stream));
    return found && destination ? findingsOf(one, { ...found, destination }) : [];
  });
  return { streams, blockers: [...(unclearable ? [cannotClear(connection)] : []), ...unsound] };
}

/** What the run itself would refuse. */
function findingsOf(
  { stream, sync_mode, destination_sync_mode }: StreamPlan,
  { schema, overrides, destination }: Pick<CatalogEntry, 'schema' | 'overrides'> & { destination: AnyDestination },
): PlanNotice[] {
  const settings = { ...settingsOf(stream), sync_mode, destination_sync_mode };
  return checkEffects(settings, { stream: schema, overrides, destination }).map(({ code, message }) => ({
    code,
    message: `${stream.name}: ${message}`,
    stream_name: stream.name,
  }));
}

function namedStreams(selected: StreamRow[], { stream_ids, stream_names }: RunParameters): StreamRow[] {
  if (stream_ids === null && stream_names === null) return selected;
  const hasName = (stream: StreamRow, name: string) =>
    stream.name === name || `${stream.namespace}.${stream.name}` === name;
  const unknown = {
    stream_ids: (stream_ids ?? []).filter((id) => !selected.some((stream) => stream.id === id)),
    stream_names: (stream_names ?? []).filter((name) => !selected.some((stream) => hasName(stream, name))),
  };
  const all = [...unknown.stream_ids, ...unknown.stream_names];
  if (all.length > 0) {
    throw badRequest('unknown_stream', `No selected stream of this connection matches ${all.join(', ')}`, unknown);
  }
  return selected.filter(
    (stream) => stream_ids?.includes(stream.id) || stream_names?.some((name) => hasName(stream, name)),
  );
}

const keyOf = (stream: { namespace: string | null; name: string }) => JSON.stringify([stream.namespace, stream.name]);

interface CatalogEntry {
  schema: StreamSchema;
  overrides: Overrides;
  /** Takes the overrides of the catalog into account. */
  windowColumn(stream: StreamRow): string | null;
}

async function catalogOf(ctx: Ctx, connection: ConnectionRow): Promise<Map<string, CatalogEntry>> {
  const rows = await ctx.db
    .select({ definition: catalogStreams.definition, overrides: catalogStreams.overrides })
    .from(catalogStreams)
    .where(and(eq(catalogStreams.account_connector_id, connection.source_id), isNull(catalogStreams.removed_at)));
  return new Map(
    rows.map(({ definition, overrides }) => {
      const discovered = discoveredStream({ definition });
      const schema = applyOverrides(discovered, overrides);
      const column = (stream: StreamRow) => windowColumn(schema, withCatalogChoices(stream, discovered, overrides));
      return [keyOf(schema), { schema, overrides, windowColumn: column }];
    }),
  );
}

async function destinationOf(ctx: Ctx, connection: ConnectionRow) {
  const [row] = await ctx.db
    .select({ connector_name: accountConnectors.connector_name })
    .from(accountConnectors)
    .where(eq(accountConnectors.id, connection.destination_id));
  return row && findConnector('destination', row.connector_name);
}

const cannotClear = (connection: ConnectionRow): PlanNotice => ({
  code: 'unsupported_sync_mode',
  message: `The destination of "${connection.name}" does not support clearing`,
  stream_name: null,
});
