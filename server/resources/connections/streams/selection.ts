import type { AnyDestination, AnySource, StreamSchema } from '../../../connectors/contract/connector.ts';
import type { Overrides } from '../../../pipeline/overrides.ts';
import { checkStream } from '../../../pipeline/stream-check/check.ts';
import type { StreamSettings } from '../../../pipeline/stream-check/settings.ts';
import { defaultSettings } from '../../../pipeline/stream-defaults.ts';
import { badRequest } from '../../../platform/errors.ts';
import type { ConnectionStreamRequest } from './schema.ts';
import { mergeSettings } from './settings.ts';
import type { StreamFinding } from './finding.ts';

/** A stream of the source and its settings in the connection. */
export interface PlannedStream {
  name: string;
  namespace: string | null;
  settings: StreamSettings;
  /** Path of the stream in the request. */
  field: string;
  /** The request names the stream, or the connection does not have it yet. */
  isChecked: boolean;
}

/** A stream of the catalog, with the overrides applied to it. */
export interface CatalogStream extends StreamSchema {
  overrides: Overrides;
}

export interface SelectionInput {
  catalog: CatalogStream[];
  source_connector: AnySource;
  destination_connector: AnyDestination;
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
 * The streams of a connection, in the order of the catalog, and what is wrong with those that change.
 * @throws ApiError 400 `unknown_stream`, `ambiguous_stream`, `duplicate_stream`.
 */
export function planStreams(input: SelectionInput): { planned: PlannedStream[]; findings: StreamFinding[] } {
  const named = resolveNames(input.catalog, input.requests ?? []);
  const names = countNames(input.catalog);
  const { source_connector: source, destination_connector: destination, reverse_etl } = input;
  const findings: StreamFinding[] = [];
  const planned = input.catalog.map((stream) => {
    const key = streamKey(stream);
    const request = named.get(key);
    const stored = input.current.get(key);
    const field = request ? `streams.${request.index}` : 'streams';
    const fresh: StreamSettings = defaultSettings(stream, destination);
    // Store the table name now: derived later, it would change when another stream of this name appears.
    if ((names.get(stream.name) ?? 0) > 1) fresh.destination_table = `${stream.namespace ?? ''}_${stream.name}`;
    const initial = { ...fresh, selected: input.requests === null || request !== undefined };
    // `deselect` means that the list replaces the old one: its streams start from the defaults again.
    const base = request && input.unnamed === 'deselect' ? initial : (stored ?? initial);
    const settings = mergeSettings(base, request?.stream ?? null, { stream, destination });
    if (!request && input.requests !== null && input.unnamed === 'deselect') settings.selected = false;
    const isChecked = request !== undefined || stored === undefined;
    const about = { stream, overrides: stream.overrides, source, destination, reverse_etl, stored };
    for (const { code, message, place } of isChecked ? checkStream(settings, about) : []) {
      const at = request ? [field, ...place].join('.') : field;
      findings.push({ code, message, field: at, stream_name: stream.name });
    }
    return { name: stream.name, namespace: stream.namespace, settings, field, isChecked };
  });
  return { planned, findings };
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
