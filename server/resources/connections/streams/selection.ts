import type { AnyDestination, AnySource, StreamSchema } from '../../../connectors/contract/connector.ts';
import { isReserved } from '../../../connectors/contract/reserved-names.ts';
import { defaultSettings } from '../../../pipeline/stream-defaults.ts';
import { badRequest } from '../../../platform/errors.ts';
import type { ConnectionStreamRequest } from './schema.ts';
import { checkSettings, mergeSettings, type StreamSettings } from './settings.ts';

/** A stream of the source and its settings in the connection. */
export interface PlannedStream {
  name: string;
  namespace: string | null;
  settings: StreamSettings;
}

export interface SelectionInput {
  catalog: StreamSchema[];
  source: AnySource;
  destination: AnyDestination;
  /** The connection goes from a database into an application. */
  reverse_etl: boolean;
  table_prefix: string;
  /** Null selects all streams. */
  requests: ConnectionStreamRequest[] | null;
  /** Current settings, keyed by `streamKey`. */
  current: ReadonlyMap<string, StreamSettings>;
  /** Handling of streams that `requests` does not name. */
  unnamed: 'keep' | 'deselect';
}

export const streamKey = (stream: { name: string; namespace?: string | null }) =>
  JSON.stringify([stream.namespace ?? '', stream.name]);

/**
 * The streams of a connection, checked, in the order of the catalog.
 * @throws ApiError 400 `unknown_stream`, `ambiguous_stream`, `duplicate_stream`, `duplicate_destination_table`, and
 * those of checkSettings.
 */
export function planStreams(input: SelectionInput): PlannedStream[] {
  const named = resolveNames(input.catalog, input.requests ?? []);
  const names = countNames(input.catalog);
  const planned = input.catalog.map((stream) => {
    const key = streamKey(stream);
    const request = named.get(key);
    const { source, destination, reverse_etl } = input;
    const stored = input.current.get(key);
    const field = request ? `streams.${request.index}` : 'streams';
    const place = { stream, source, destination, reverse_etl, stored, field };
    const fresh: StreamSettings = defaultSettings(stream, input.destination);
    // Store the table name now: derived later, it would change when another stream of this name appears.
    if ((names.get(stream.name) ?? 0) > 1) fresh.destination_table = `${stream.namespace ?? ''}_${stream.name}`;
    const initial = { ...fresh, selected: input.requests === null || request !== undefined };
    // `deselect` means that the list replaces the old one: its streams start from the defaults again.
    const base = request && input.unnamed === 'deselect' ? initial : (stored ?? initial);
    const settings = mergeSettings(base, request?.stream ?? null, place);
    if (!request && input.requests !== null && input.unnamed === 'deselect') settings.selected = false;
    if (request || !stored) checkSettings(settings, place);
    return { name: stream.name, namespace: stream.namespace, settings };
  });
  refuseSharedTables(planned, input.table_prefix);
  return planned;
}

function countNames(catalog: StreamSchema[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { name } of catalog) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function resolveNames(catalog: StreamSchema[], requests: ConnectionStreamRequest[]) {
  const byName = Map.groupBy(catalog, (stream) => stream.name);
  const named = new Map<string, { stream: ConnectionStreamRequest; index: number }>();
  for (const [index, request] of requests.entries()) {
    const sameName = byName.get(request.name) ?? [];
    const found = request.namespace == null ? sameName : sameName.filter((one) => one.namespace === request.namespace);
    const context = { field: `streams.${index}.name`, stream_name: request.name };
    const [stream] = found;
    if (!stream) throw badRequest('unknown_stream', `The source has no stream "${request.name}"`, context);
    if (found.length > 1) {
      throw badRequest('ambiguous_stream', `"${request.name}" exists in several namespaces. Set namespace`, context);
    }
    const key = streamKey(stream);
    if (named.has(key)) throw badRequest('duplicate_stream', `"${request.name}" is listed twice`, context);
    named.set(key, { stream: request, index });
  }
  return named;
}

/** Two streams in one table would overwrite each other. */
export function refuseSharedTables(planned: PlannedStream[], table_prefix: string): void {
  const tables = new Map<string, string>();
  for (const { name, settings } of planned) {
    if (!settings.selected) continue;
    const table = `${table_prefix}${settings.destination_table ?? name}`;
    if (isReserved(table)) {
      throw badRequest('reserved_name', `"${name}" cannot be written to "${table}", a table of the service itself`, {
        field: 'streams',
        destination_table: table,
      });
    }
    const other = tables.get(table);
    if (other !== undefined) {
      throw badRequest('duplicate_destination_table', `"${other}" and "${name}" would both be written to "${table}"`, {
        field: 'streams',
        destination_table: table,
      });
    }
    tables.set(table, name);
  }
}
