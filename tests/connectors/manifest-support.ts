import { airbyteManifestSource } from '../../server/connectors/airbyte-manifest/source.ts';
import type {
  AnySource,
  Batch,
  Cell,
  ConnectorContext,
  ReadRequest,
  StreamSchema,
} from '../../server/connectors/contract/connector.ts';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { readBatches, requestOf } from './reading.ts';
import { contextOf } from './places.ts';

const source = airbyteManifestSource as AnySource;

type Part = Record<string, unknown>;

/** A minimal stream of a manifest. */
export function streamOf(
  name: string,
  {
    url = 'http://127.0.0.1:1',
    path = `/${name}`,
    requester = {},
    retriever = {},
    selector = {},
    properties = null as Part | null,
    ...stream
  }: Part & { properties?: Part | null } = {},
): Part {
  return {
    type: 'DeclarativeStream',
    name,
    retriever: {
      type: 'SimpleRetriever',
      requester: { type: 'HttpRequester', url_base: url, path, http_method: 'GET', ...(requester as Part) },
      record_selector: {
        type: 'RecordSelector',
        extractor: { type: 'DpathExtractor', field_path: [] },
        ...(selector as Part),
      },
      ...(retriever as Part),
    },
    ...(properties && {
      schema_loader: { type: 'InlineSchemaLoader', schema: { type: 'object', properties } },
    }),
    ...stream,
  };
}

export const manifestOf = (streams: Part[], more: Part = {}): Part => ({
  version: '6.0.0',
  type: 'DeclarativeSource',
  check: { type: 'CheckStream', stream_names: [String(streams[0]?.name)] },
  streams,
  ...more,
});

export interface Settings {
  manifest: Part | string;
  config?: Part;
  secrets?: Part;
  [setting: string]: unknown;
}

export const settingsOf = ({ manifest, ...more }: Settings) => ({
  manifest: typeof manifest === 'string' ? manifest : JSON.stringify(manifest),
  ...more,
});

/** Problems with the settings; empty if valid. */
export function problemsOf(settings: Settings): string[] {
  const parsed = parseParameters(source, settingsOf(settings));
  return 'problems' in parsed ? parsed.problems.map(({ parameter, message }) => `${parameter}: ${message}`) : [];
}

export function contextFor(settings: Settings, more: Partial<ConnectorContext<unknown>> = {}) {
  const warnings: string[] = [];
  const waits: Date[] = [];
  const base = contextOf(airbyteManifestSource, { filesRoot: '/nowhere' }, { settings: settingsOf(settings) });
  const context = {
    ...base,
    warn: (code: string, message: string) => void warnings.push(`${code}: ${message}`),
    rateLimited: (until: Date) => void waits.push(until),
    ...more,
  } as ConnectorContext<never>;
  return { context, warnings, waits };
}

export const check = (settings: Settings) => source.check(contextFor(settings).context);

export async function discover(settings: Settings): Promise<StreamSchema[]> {
  return await source.discover(contextFor(settings).context);
}

export interface Read {
  rows: Cell[][];
  /** The first column of each row. */
  ids: Cell[];
  batches: Batch[];
  state: NonNullable<Batch['state']> | null;
  warnings: string[];
  waits: Date[];
}

/** Discovers and reads one stream, the first unless it is named. */
export async function read(
  settings: Settings,
  more: Partial<ReadRequest> & { name?: string; context?: Partial<ConnectorContext<unknown>> } = {},
): Promise<Read> {
  const { name, context: parts, ...request } = more;
  const { context, warnings, waits } = contextFor(settings, parts);
  const streams = request.stream ? [request.stream] : await source.discover(context);
  const stream = name === undefined ? streams[0] : streams.find((one) => one.name === name);
  if (!stream) throw new Error(`no stream ${name}`);
  const batches = await readBatches(source, context, requestOf(stream, request));
  const state = batches.findLast((batch) => batch.state)?.state ?? null;
  const rows = batches.flatMap((batch) => batch.rows);
  return {
    rows,
    ids: rows.map((row) => row[0] ?? null),
    batches,
    state: state && JSON.parse(JSON.stringify(state)),
    warnings,
    waits,
  };
}
