import type { KeptJob } from '../contract/connector.ts';
import { ConfigurationError, DataError } from '../contract/errors.ts';
import { completedJob, type JobStatus, outlivingContext, type PolledJob } from '../kits/rest/jobs.ts';
import { createPaginator } from '../kits/rest/pagination.ts';
import { parseResponse } from '../kits/rest/records.ts';
import { requestedWait } from '../kits/rest/retry-after.ts';
import { INTERACTIVE } from '../kits/rest/retry.ts';
import { selectorOf } from '../kits/rest/selector.ts';
import { rawNumber } from '../cells/json-line.ts';
import type { TemplateScope } from '../kits/rest/template.ts';
import { type Api, openApi, pageRequest } from './api.ts';
import type { Job, JobRequest, StreamDefinition } from './definition.ts';
import { errorJudge } from './errors-in-responses.ts';

/** What pages are read from. */
export interface Reading {
  scope: TemplateScope;
  /** The URL of a result; null: the request of the stream, or the download of its job. */
  download: URL | null;
}

interface JobReading {
  api: Api;
  stream: StreamDefinition;
  job: Job;
  scope: TemplateScope;
}

/** Creates a job of the service, waits until it is completed, and returns its results. @throws ConnectorError */
export async function* downloadsOf(reading: JobReading): AsyncGenerator<Reading> {
  const { api, stream, job, scope } = reading;
  await cancelEarlier(api);
  const kept = keptJob(reading);
  try {
    const ended = await completedJob(
      {
        create: async () => await kept.keep(await create(reading)),
        poll: (id) => poll(reading, id),
        cancel: async (id) => {
          await cancel(api, { stream: stream.name, id }, scope);
          await kept.release();
        },
      },
      {
        name: stream.name,
        signal: api.ctx.signal,
        timeout_ms:
          (api.interactive ? Math.min(job.timeout_seconds, INTERACTIVE.timeout_seconds) : job.timeout_seconds) * 1000,
        first_pause_ms: job.interval_seconds * 1000,
        max_pause_ms: Math.max(job.interval_seconds, job.max_interval_seconds) * 1000,
        recreations: 1,
      },
    );
    if (!ended) return;
    const own = { ...scope, job: { id: ended.job } };
    if (job.urls === undefined) yield { scope: own, download: null };
    else for (const download of urlsIn(reading, ended.response)) yield { scope: own, download };
  } finally {
    await kept.release();
  }
}

/** The job of a reading, which the service stores until its results are read. */
function keptJob({ api: { ctx }, stream }: JobReading) {
  let current: KeptJob | null = null;
  return {
    keep: async (id: string) => {
      current = { stream: stream.name, id };
      await ctx.jobs?.keep(current);
      return id;
    },
    release: async () => {
      if (current) await ctx.jobs?.release(current);
      current = null;
    },
  };
}

/** Ends the jobs of an attempt whose process has died: nothing reads their results. */
async function cancelEarlier(api: Api): Promise<void> {
  for (const one of api.ctx.jobs?.takeEarlier() ?? []) {
    try {
      await cancel(api, one, api.scope);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      api.ctx.log.warn('a job of an earlier attempt was not cancelled', { stream: one.stream, reason: message });
    }
    await api.ctx.jobs?.release(one);
  }
}

async function create(reading: JobReading): Promise<string> {
  const json = await send(reading, reading.scope);
  const id = select(reading, reading.job.id, json);
  const text = typeof id === 'string' ? id : (rawNumber(id) ?? (typeof id === 'number' ? String(id) : ''));
  if (text !== '') return text;
  const { stream, job } = reading;
  throw new DataError('job_id_missing', `${stream.name}: the response to request has no id of a job at "${job.id}"`);
}

async function poll(reading: JobReading, id: string): Promise<PolledJob<unknown>> {
  const { job, stream, api } = reading;
  let wait_ms: number | null = null;
  const json = await send(reading, { ...reading.scope, job: { id } }, job.poll, (headers) => {
    wait_ms = headers.has('retry-after') ? requestedWait(headers, api.ctx.now()) : null;
  });
  const found = select(reading, job.status, json);
  const label = typeof found === 'string' ? found : (rawNumber(found) ?? JSON.stringify(found) ?? '');
  const lists: [JobStatus, string[]][] = [
    ['completed', job.completed],
    ['failed', job.failed],
    ['expired', job.expired],
    ['skipped', job.empty],
  ];
  const status = lists.find(([, labels]) => labels.includes(label))?.[0] ?? 'running';
  const isKnown =
    status !== 'running' || (found !== undefined && found !== null && job.running?.includes(label) !== false);
  if (isKnown) return { status, label, response: json, wait_ms };
  throw new ConfigurationError(
    'unknown_job_status',
    `${stream.name}: the job has the status "${label.slice(0, 100)}" at "${job.status}", which the definition does not list`,
  );
}

/** Also after a stop, which has aborted the requests of the read. */
async function cancel(api: Api, { stream: name, id }: KeptJob, scope: TemplateScope): Promise<void> {
  const stream = api.definition.streams.find((one) => one.name === name);
  const request = stream?.job?.cancel;
  if (!request) return;
  const last = openApi(outlivingContext(api.ctx), { interactive: true });
  await send({ api: last, stream }, { ...scope, job: { id } }, request);
}

/** The JSON of the response to a request about a job. */
async function send(
  { api, stream }: Pick<JobReading, 'api' | 'stream'>,
  scope: TemplateScope,
  request?: JobRequest,
  onHeaders?: (headers: Headers) => void,
): Promise<unknown> {
  const position = createPaginator({ type: 'none' }, api.origins).first;
  const built = pageRequest(api, stream, { scope, position, request });
  const headers = { ...built.headers, accept: 'application/json' };
  const { errorIn } = errorJudge(api.definition, stream);
  const response = await api.client.send({ ...built, headers }, { errorIn });
  onHeaders?.(response.headers);
  return parseResponse(stream.name, response);
}

function urlsIn(reading: JobReading, json: unknown): URL[] {
  const { api, stream, job } = reading;
  const selected = select(reading, job.urls ?? '@', json);
  const found: unknown[] = Array.isArray(selected) ? selected : [selected];
  return found.map((one) => {
    const url = typeof one === 'string' ? URL.parse(one, api.base) : null;
    const isSecure = url?.protocol === 'https:' || url?.protocol === new URL(api.base).protocol;
    if (url && isSecure) return url;
    throw new DataError(
      'job_url_invalid',
      `${stream.name}: "${job.urls}" selects something other than URLs of results by https`,
    );
  });
}

function select({ stream }: JobReading, expression: string, json: unknown): unknown {
  try {
    return selectorOf(expression)(json);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new DataError('selector_failed', `${stream.name}: the selector "${expression}" failed: ${message}`);
  }
}
