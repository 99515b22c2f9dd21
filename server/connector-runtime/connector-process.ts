import type {
  AnyConnector,
  AnySource,
  Cell,
  ConnectorContext,
  Dataset,
  InboxStanding,
  Recorder,
  StoredEvent,
  StoredSecret,
  StreamSchema,
} from '../connectors/contract/connector.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import { parseParameters } from '../connectors/contract/parameters.ts';
import { findConnector } from '../connectors/registry.ts';
import { type ParentCalls, serveJobs } from '../platform/limited-process/child.ts';
import { buildConnector, type BuiltConnector, type ConnectorServices, networkFor } from './build-connector.ts';
import type {
  CallJob,
  ConnectorItem,
  ConnectorJob,
  DraftJob,
  Exchanged,
  LockedSecret,
  OutlineJob,
  ParseJob,
  Sample,
  SampleRequest,
} from './connector-job.ts';
import { SILENT } from './tunnel-check.ts';

async function* doJob(job: ConnectorJob, parent: ParentCalls): AsyncGenerator<ConnectorItem> {
  if (job.operation === 'parse') yield { parsed: parsed(job) };
  else if (job.operation === 'draft') yield { drafted: drafted(job) };
  else if (job.operation === 'outline') yield { outlined: outlined(job) };
  else yield* callConnector(job, parent);
}

function parsed({ type, name, parameters }: ParseJob) {
  const connector = findConnector(type, name);
  if (!connector) throw new ConfigurationError('unknown_connector', `Unknown connector ${name}`);
  return parseParameters(connector, parameters);
}

function drafted({ name, openapi }: DraftJob) {
  const connector = findConnector('source', name);
  if (connector?.type !== 'source' || !connector.draftDefinition) {
    throw new ConfigurationError('draft_unsupported', `${name} has no definitions to draft`);
  }
  return connector.draftDefinition(openapi);
}

function outlined({ name, parameters }: OutlineJob) {
  const connector = findConnector('source', name);
  if (connector?.type !== 'source' || !connector.outline) {
    throw new ConfigurationError('outline_unsupported', `${name} has no manifest`);
  }
  return connector.outline(parameters);
}

/** One call of a connector. What it opens is closed at its end. */
async function* callConnector(job: CallJob, parent: ParentCalls): AsyncGenerator<ConnectorItem> {
  const abort = new AbortController();
  const cleanUps: (() => Promise<void>)[] = [];
  const clock = job.now_ms - Date.now();
  const exchanges: Exchanged[] = [];
  try {
    const services: ConnectorServices = {
      recorder: job.operation === 'try_page' ? keepingRecorder(exchanges) : tunnelRecorder(parent),
      signal: abort.signal,
      cleanUp: (end) => void cleanUps.push(end),
      reach: async (host) => void (await parent.ask('reach', host)),
      pin: async (fingerprint) => void (await parent.ask('pin', fingerprint)),
      warn: (code, message) => parent.note('warn', code, message),
      rateLimited: (until) => parent.note('rateLimited', until.getTime()),
      log: {
        info: (message, fields) => parent.note('info', message, fields),
        warn: (message, fields) => parent.note('logWarning', message, fields),
      },
      now: () => new Date(Date.now() + clock),
      rotateSecret: (given, work) => rotateSecret(parent, given, work),
      inbox: {
        standing: async () => (await parent.ask('inboxStanding')) as InboxStanding,
        read: async (range) => (await parent.ask('readInbox', range)) as StoredEvent[],
      },
    };
    if (job.operation === 'discover') services.known = job.known;
    if (job.operation === 'consent_page' || job.operation === 'consent_tokens') {
      yield await consented(job, services);
      return;
    }
    const built = buildConnector(job.settings, services);
    if (job.operation === 'try_page') yield* triedPage(built, { ...job, exchanges });
    else yield* resultOf(built, job);
  } finally {
    abort.abort();
    await Promise.allSettled(cleanUps.map((end) => end()));
  }
}

type ConsentJob = Extract<CallJob, { operation: 'consent_page' | 'consent_tokens' }>;

/** Without a parsed configuration: what the consent provides is still missing. */
async function consented(job: ConsentJob, services: ConnectorServices): Promise<ConnectorItem> {
  const { type, name, parameters } = job.settings;
  const consent = findConnector(type as 'source', name)?.consent;
  if (!consent) throw new ConfigurationError('consent_unsupported', `${name} has no consent`);
  if (job.operation === 'consent_page') return { consent_page: consent.page(parameters, job.request) };
  const { fetch } = networkFor(job.settings, services);
  return { consent_tokens: await consent.complete({ fetch, signal: services.signal }, parameters, job.answer) };
}

const MAX_RECORDS = 20;

/** The requests are of most use where the page cannot be read, so they come first. */
async function* triedPage(
  { connector, ctx }: BuiltConnector,
  { stream_name, exchanges }: { stream_name: string | null; exchanges: Exchanged[] },
): AsyncGenerator<ConnectorItem> {
  if (connector.type !== 'source' || !connector.tryPage) {
    throw new ConfigurationError('trial_unsupported', `${connector.display_name} reads no single pages`);
  }
  try {
    const { records, fields, next } = await connector.tryPage(ctx, stream_name);
    const shown = records.slice(0, MAX_RECORDS).map((record) => JSON.stringify(record));
    yield { tried: { exchanges, page: { records: shown, found: records.length, fields, next } } };
  } catch (error) {
    yield { tried: { exchanges, page: null } };
    throw error;
  }
}

function keepingRecorder(exchanges: Exchanged[]): Recorder {
  return {
    start: (request) => {
      const exchanged: Exchanged = { request, response: null };
      exchanges.push(exchanged);
      return { done: (response) => void (exchanged.response = response), failed: () => {} };
    },
  };
}

async function* resultOf({ connector, ctx }: BuiltConnector, job: ResultJob): AsyncGenerator<ConnectorItem> {
  switch (job.operation) {
    case 'check':
      yield { check: await connector.check(ctx, { schema: job.schema }) };
      return;
    case 'possible_values': {
      const list = connector.possibleValues?.[job.parameter];
      if (!list) {
        throw new ConfigurationError('parameter_not_dynamic', `The values of ${job.parameter} cannot be listed`);
      }
      yield { values: await list(ctx) };
      return;
    }
    case 'channels':
      if (connector.type === 'destination' && connector.channels) yield { channels: await connector.channels(ctx) };
      return;
    case 'sample':
      if (connector.type === 'source') yield { sample: await readSample(connector, ctx, job) };
      return;
    case 'sample_dataset':
      if (connector.type === 'source') yield* datasetSample(connector, ctx, job);
      return;
    case 'sample_table':
      if (connector.type !== 'destination' || !connector.sampleTable) throw unreadable(connector);
      yield { table: await connector.sampleTable(ctx, job.sample) };
      return;
    case 'rows':
      if (connector.type !== 'source') return;
      for await (const { rows } of connector.read(ctx, job.request)) yield { rows };
      return;
    case 'mark_log':
      if (connector.type === 'source') yield { mark: await connector.replication!.mark(ctx, job.tables) };
      return;
    case 'sequences':
      if (connector.type === 'source') yield { sequences: await connector.sequences!(ctx, job.tables) };
      return;
    case 'advance_sequences':
      if (connector.type === 'destination') yield { advanced: await connector.advanceSequences!(ctx, job) };
      return;
    case 'discover': {
      // One by one: the service reads a large catalog without a pause.
      const streams: StreamSchema[] = connector.type === 'source' ? await connector.discover(ctx) : [];
      for (const stream of streams) yield { stream };
    }
  }
}

type ResultJob = Exclude<CallJob, { operation: 'try_page' } | ConsentJob>;

const unreadable = ({ display_name }: AnyConnector) =>
  new ConfigurationError('table_preview_unsupported', `Rows in ${display_name} cannot be read`);

/** The columns of a query, then its first rows. */
async function* datasetSample(
  source: AnySource,
  ctx: ConnectorContext<unknown>,
  { dataset, limit }: { dataset: Dataset; limit: number },
): AsyncGenerator<ConnectorItem> {
  if (!source.describeDataset) {
    throw new ConfigurationError('datasets_unsupported', `${source.display_name} does not support datasets`);
  }
  const stream = await source.describeDataset(ctx, dataset);
  yield { fields: stream.fields };
  const columns = stream.fields.map((field) => ({ field, masking: 'none' as const }));
  const whole = { sync_mode: 'full_refresh' as const, cursor_field: null, state: null, window: null };
  const request = { ...whole, stream, columns, filters: [], primary_key: [] };
  yield { sample: await readSample(source, ctx, { request, limit }) };
}

/** Larger rows are left out: half a value would look like a whole one. */
const MAX_ROW_LENGTH = 1_000_000;
const MAX_LENGTH = 4_000_000;

/** The first rows of a read, which ends there. Stores nothing. */
async function readSample(
  source: AnySource,
  ctx: ConnectorContext<unknown>,
  { request, limit }: SampleRequest,
): Promise<Sample> {
  const estimated_rows = (await source.estimate?.(ctx, request)) ?? null;
  const sample: Sample = { rows: [], skipped: 0, estimated_rows };
  let length = 0;
  for await (const batch of source.read(ctx, request)) {
    for (const row of batch.rows) {
      const own = lengthOf(row);
      if (own > MAX_ROW_LENGTH) sample.skipped += 1;
      else sample.rows.push(row);
      length += Math.min(own, MAX_ROW_LENGTH);
      if (sample.rows.length >= limit || length > MAX_LENGTH) return sample;
    }
  }
  return sample;
}

const lengthOf = (row: readonly Cell[]) => row.reduce((sum, cell) => sum + (cell?.length ?? 0), 0);

/** Reports logins to an SSH server, and nothing else: network logs belong to runs. */
const tunnelRecorder = (parent: ParentCalls): Recorder => ({
  start: ({ url }) => (url.startsWith('ssh://') ? { ...SILENT, done: () => parent.note('tunnel', url) } : SILENT),
});

async function rotateSecret<Result>(
  parent: ParentCalls,
  given: string,
  work: (stored: StoredSecret) => Promise<Result>,
): Promise<Result> {
  const { lock, current } = (await parent.ask('lockSecret', given)) as LockedSecret;
  const replace = async (used: string, replacement: string) =>
    (await parent.ask('replaceSecret', lock, used, replacement)) === true;
  try {
    return await work({ current, replace });
  } finally {
    await parent.ask('unlockSecret', lock);
  }
}

serveJobs(doJob);
