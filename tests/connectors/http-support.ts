import { httpApiSource } from '../../server/connectors/http-api/source.ts';
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

const QUICK = { max_attempts: 4, base_seconds: 0.001 };

export interface ApiSettings {
  base_url: string;
  streams: object[];
  secrets?: Record<string, string>;
  config?: Record<string, unknown>;
  [key: string]: unknown;
}

const settingsOf = ({ secrets, config, ...definition }: ApiSettings) => ({
  definition: JSON.stringify({ retries: QUICK, ...definition }),
  ...(secrets && { secrets }),
  ...(config && { config }),
});

/** A context for the definition, which collects warnings and pauses. */
export function apiContext(settings: ApiSettings, more: Partial<ConnectorContext<unknown>> = {}) {
  const warnings: string[] = [];
  const waits: Date[] = [];
  const base = contextOf(httpApiSource, { filesRoot: '/nowhere' }, { settings: settingsOf(settings) });
  const context = {
    ...base,
    warn: (code: string) => void warnings.push(code),
    rateLimited: (until: Date) => void waits.push(until),
    ...more,
  } as ConnectorContext<never>;
  return { context, warnings, waits };
}

/** Problems with the settings; empty if valid. */
export function problemsOf(settings: object): string[] {
  const parsed = parseParameters(httpApiSource, settings);
  return 'problems' in parsed ? parsed.problems.map(({ parameter, message }) => `${parameter}: ${message}`) : [];
}

export async function discoverOne(context: ConnectorContext<never>, name?: string): Promise<StreamSchema> {
  const streams = await (httpApiSource as AnySource).discover(context);
  const stream = name === undefined ? streams[0] : streams.find((one) => one.name === name);
  if (!stream) throw new Error(`no stream ${name}`);
  return stream;
}

export interface WholeRead {
  batches: Batch[];
  rows: Cell[][];
  /** The last state returned. */
  state: NonNullable<Batch['state']> | null;
}

/** Discovers and reads. */
export async function readAll(
  settings: ApiSettings,
  more: Partial<ReadRequest> & { name?: string; context?: Partial<ConnectorContext<unknown>> } = {},
): Promise<WholeRead & ReturnType<typeof apiContext>> {
  const { name, context: parts, ...request } = more;
  const made = apiContext(settings, parts);
  const stream = request.stream ?? (await discoverOne(made.context, name));
  const batches = await readBatches(httpApiSource as AnySource, made.context, requestOf(stream, request));
  const state = batches.findLast((batch) => batch.state)?.state ?? null;
  return {
    ...made,
    batches,
    rows: batches.flatMap(({ rows }) => rows),
    state: state && JSON.parse(JSON.stringify(state)),
  };
}
