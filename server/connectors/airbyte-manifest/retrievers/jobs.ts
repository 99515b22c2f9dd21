import { ConfigurationError } from '../../contract/errors.ts';
import { completedJob, type JobStatus, outlivingContext, type PolledJob } from '../../kits/rest/jobs.ts';
import { parseExactly } from '../../cells/json-line.ts';
import type { HttpRequester } from '../components/request-components.ts';
import type { Job, Retriever } from '../components/stream-components.ts';
import { allAtPath } from '../interpolation/dpath.ts';
import { pyText } from '../interpolation/python-literal.ts';
import type { Scope } from '../interpolation/template.ts';
import { isMapping } from '../interpolation/values.ts';
import { buildRequest } from '../requests/build-request.ts';
import { headersOf, type SeenResponse } from '../requests/error-handling.ts';
import { clientOf, type Runtime } from '../runtime/runtime.ts';

interface JobReading {
  runtime: Runtime;
  /** Of the stream. */
  name: string;
  retriever: Retriever;
  scope: Scope;
}

export interface Download {
  /** What its templates see besides the slice. */
  more: Scope;
  /** Origins that its requests may have. */
  origins: Set<string>;
}

const DEFAULT_TIMEOUT_MINUTES = 60;
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 10_000;

/** Creates a job at the service, waits until it is completed, and returns what can be downloaded. */
export async function* downloadsOf(reading: JobReading, job: Job): AsyncGenerator<Download> {
  const { runtime, name, scope } = reading;
  const knownOf = ({ seen, headers }: Sent) => ({ creation_response: responseScope(seen, headers) });
  const ended = await completedJob(
    {
      create: () => send(reading, job.creation_requester, {}),
      poll: (created) => poll(reading, job, inSlice(scope, knownOf(created))),
      cancel: (created) => cancel(reading, job, inSlice(scope, knownOf(created))),
    },
    {
      name,
      signal: runtime.ctx.signal,
      timeout_ms: timeoutOf(reading, job) * 60_000,
      first_pause_ms: FIRST_PAUSE_MS,
      max_pause_ms: MAX_PAUSE_MS,
      recreations: 0,
    },
  );
  if (!ended) return;
  const { seen, headers } = ended.response;
  const known = { ...knownOf(ended.job), polling_response: responseScope(seen, headers) };
  for (const download_target of await targetsOf(reading, job, { seen, known }))
    yield downloadOf(reading, inSlice(scope, { ...known, download_target }), download_target);
  if (job.delete_requester) await send(reading, job.delete_requester, inSlice(scope, knownOf(ended.job)));
}

interface Sent {
  seen: SeenResponse;
  /** Of the request. */
  headers: Record<string, string>;
}

async function send({ runtime, scope }: JobReading, requester: HttpRequester, more: Scope): Promise<Sent> {
  const { templates, origins } = runtime;
  const own = { ...scope, ...more, parameters: requester.$parameters ?? {} };
  const request = buildRequest({ requester, templates, scope: own, injections: [], address: null, origins });
  const interpolation = { templates, scope: own };
  const seen = await clientOf(runtime, requester).send({ request, handler: requester.error_handler, interpolation });
  const named = Object.entries(request.headers).map(([name, value]) => [capitals(name), value]);
  return { seen, headers: { ...request.headers, ...Object.fromEntries(named) } };
}

const capitals = (name: string) => name.replaceAll(/(^|-)[a-z]/g, (start) => start.toUpperCase());

/** A response as the templates of later requests see it. */
function responseScope({ json, response }: SeenResponse, headers: Record<string, string>): Record<string, unknown> {
  const body = json();
  return { headers: headersOf(response), request: { headers }, ...(isMapping(body) ? body : {}) };
}

/** Variables are among the extra fields of the slice too. */
function inSlice(scope: Scope, more: Record<string, unknown>): Scope {
  const slice = scope.stream_slice as { extra_fields?: Record<string, unknown> };
  const extra_fields = { ...slice.extra_fields, ...more };
  const sliced = { ...slice, extra_fields };
  return { ...more, stream_slice: sliced, stream_partition: sliced, stream_interval: sliced };
}

async function poll(reading: JobReading, job: Job, extra: Scope): Promise<PolledJob<Sent>> {
  const { runtime, name } = reading;
  const { completed, skipped, failed, timeout, running } = job.status_mapping;
  const response = await send(reading, job.polling_requester, extra);
  const [found] = values(runtime, job.status_extractor.field_path, response.seen.json());
  const label = pyText(found);
  const lists: [JobStatus, string[]][] = [
    ['completed', completed],
    ['skipped', skipped],
    ['failed', failed],
    ['expired', timeout],
    ['running', running],
  ];
  const status = lists.find(([, labels]) => labels.includes(label))?.[0];
  if (status) return { status, label, response, wait_ms: null };
  throw new ConfigurationError(
    'unknown_job_status',
    `${name}: the manifest does not know the status "${label.slice(0, 100)}" of a job`,
  );
}

/** Also after a stop, which has aborted the requests of the read. */
async function cancel(reading: JobReading, { abort_requester }: Job, extra: Scope): Promise<void> {
  if (!abort_requester) return;
  const ctx = outlivingContext(reading.runtime.ctx);
  const runtime = { ...reading.runtime, ctx, clients: new Map(), interactive: true };
  await send({ ...reading, runtime }, abort_requester, extra);
}

function timeoutOf({ runtime, scope }: JobReading, { polling_job_timeout: given }: Job): number {
  const value = typeof given === 'string' ? Number(runtime.templates.value(given, scope)) : given;
  return value && Number.isFinite(value) ? value : DEFAULT_TIMEOUT_MINUTES;
}

const values = ({ templates, scope }: Runtime, path: readonly string[], json: unknown): unknown[] =>
  allAtPath(
    json,
    path.map((part) => templates.text(part, scope) ?? part),
  ).flat();

async function targetsOf(
  reading: JobReading,
  { download_target_extractor: extractor, download_target_requester: requester }: Job,
  { seen, known }: { seen: SeenResponse; known: Record<string, unknown> },
): Promise<unknown[]> {
  if (!extractor) return [''];
  const answer = requester ? (await send(reading, requester, inSlice(reading.scope, known))).seen : seen;
  const json = answer.response.text === '' ? {} : parseExactly(answer.response.text);
  return values(reading.runtime, extractor.field_path, json);
}

/** A download without credentials may be at any host, such as an object store. */
function downloadOf({ runtime, retriever }: JobReading, more: Scope, target: unknown): Download {
  const { authenticator } = retriever.requester;
  const url = typeof target === 'string' ? URL.parse(target) : null;
  if (!url || runtime.origins.has(url.origin)) return { more, origins: runtime.origins };
  if (authenticator && authenticator.type !== 'NoAuth') {
    throw new ConfigurationError(
      'foreign_address',
      `The download is on ${url.host}, which is not a host of the manifest. It would receive the credentials.`,
    );
  }
  return { more, origins: new Set([...runtime.origins, url.origin]) };
}
