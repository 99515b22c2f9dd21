import { z } from 'zod';
import { JWT_ALGORITHMS } from '../kits/rest/signing/jwt.ts';
import { name, selector, template } from '../kits/rest/document.ts';
import { referencesIn } from '../kits/rest/template.ts';

const setting = template('config', 'secrets');
const inRequest = template('config', 'secrets', 'cursor', 'window', 'parent', 'page');
const inJob = template('config', 'secrets', 'cursor', 'window', 'parent', 'page', 'job');

const tokenEndpoint = {
  token_url: setting,
  client_id: setting,
  client_secret: setting,
  scope: setting.optional(),
  /** Where the token endpoint expects the client ID and secret. */
  credentials_in: z.enum(['body', 'basic_header']).default('body'),
};
const Authentication = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('none') }),
  z.strictObject({ type: z.literal('bearer'), token: setting }),
  z.strictObject({ type: z.literal('api_key'), in: z.enum(['header', 'query']), name, value: setting }),
  z.strictObject({ type: z.literal('basic'), username: setting, password: setting }),
  z.strictObject({
    type: z.literal('jwt'),
    algorithm: z.enum(JWT_ALGORITHMS),
    key: setting,
    passphrase: setting.optional(),
    headers: z.record(name, setting).default({}),
    claims: z.record(name, z.json()).default({}),
    lifetime_seconds: z.int().min(1).max(86_400).default(1200),
    header: name.default('Authorization'),
    prefix: z.string().max(100).default('Bearer'),
  }),
  z.strictObject({
    type: z.literal('hmac'),
    algorithm: z.enum(['sha1', 'sha256', 'sha512']).default('sha256'),
    key: setting,
    message: template('config', 'secrets', 'request'),
    header: name,
    encoding: z.enum(['hex', 'base64']).default('hex'),
    prefix: z.string().max(100).default(''),
    timestamp_header: name.optional(),
  }),
  z.strictObject({
    type: z.literal('aws_sigv4'),
    access_key_id: setting,
    secret_access_key: setting,
    session_token: setting.optional(),
    region: setting,
    service: setting,
  }),
  z.strictObject({ type: z.literal('oauth2_client_credentials'), ...tokenEndpoint }),
  z.strictObject({
    type: z.literal('oauth2_refresh_token'),
    ...tokenEndpoint,
    refresh_token: setting,
    /** The page where users consent, so that the service obtains the refresh token itself. */
    authorization_url: template('config').optional(),
    authorization_parameters: z.record(name, template('config')).default({}),
  }),
]);

/** Shared by all kinds of pagination: when to stop. */
const stopping = {
  /** `empty_page` costs one more request, but is safe where a service returns fewer records than requested. */
  stop: z.enum(['empty_page', 'short_page']).default('empty_page'),
  /** The pages end when it selects false, null or nothing in the response. */
  has_more: selector.optional(),
  /** Statuses that mean that there are no more pages. */
  end_statuses: z.array(z.int().min(400).max(499)).max(20).default([]),
  max_pages: z.int().min(1).max(10_000_000).default(1_000_000),
};
const size = z.int().min(1).max(100_000).nullable().default(null);
const Pagination = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('none') }),
  z.strictObject({ type: z.literal('page_number'), start: z.int().min(0).default(1), size, ...stopping }),
  z.strictObject({ type: z.literal('offset'), size, ...stopping }),
  z.strictObject({ type: z.literal('cursor'), token: selector, size, ...stopping }),
  z.strictObject({ type: z.literal('link_header'), rel: name.default('next'), size, ...stopping }),
  z.strictObject({ type: z.literal('next_address'), address: selector, size, ...stopping }),
]);
export type Pagination = z.infer<typeof Pagination>;

/** Errors that the service returns with the status of a success. */
const ErrorRules = z
  .array(
    z.strictObject({
      /** The response is an error when it selects something other than false, null, an empty text or an empty list. */
      when: selector,
      /** The message of the service. */
      message: selector.optional(),
      /** `retry`: it may pass. `ignore`: the response has no records. */
      action: z.enum(['fail', 'retry', 'ignore']).default('fail'),
    }),
  )
  .max(20);

const Incremental = z.strictObject({
  /** A field of the records that grows. */
  cursor_field: name,
  type: z.enum(['time', 'number', 'text']).default('time'),
  /** Format of times in requests, and in records where they are numbers. */
  format: z.enum(['iso', 'date', 'unix', 'unix_ms']).default('iso'),
  order: z.enum(['ascending', 'none']).default('none'),
  /** Start of the first read. */
  start: template('config').optional(),
  /** Reads in windows of this many days. */
  step_days: z.int().min(1).max(3660).optional(),
  /** Each run reads this many days again. */
  look_back_days: z.int().min(0).max(3660).default(0),
  /** `window.end` is the last moment of the window, not the first one after it. */
  end_inclusive: z.boolean().default(false),
});
export type Incremental = z.infer<typeof Incremental>;

const types = ['string', 'integer', 'number', 'boolean', 'object', 'array', 'null'] as const;
const formats = ['date', 'date-time', 'local-date-time', 'time', 'unix-time', 'unix-time-ms'] as const;
const Property = z.strictObject({
  type: z.union([z.enum(types), z.array(z.enum(types)).min(1)]),
  format: z.enum(formats).optional(),
  description: z.string().max(2000).optional(),
});
export type Property = z.infer<typeof Property>;

const requestOf = <Method extends string>(methods: readonly Method[], text: typeof inRequest) => ({
  method: z.enum(methods).default(methods[0] as Method),
  path: text,
  query: z.record(name, text).default({}),
  headers: z.record(name, text).default({}),
  /** JSON. Any text in it may contain references. */
  body: z.json().optional(),
});
const JobRequest = z.strictObject(requestOf(['GET', 'POST', 'PUT', 'DELETE'], inJob));
export type JobRequest = z.infer<typeof JobRequest>;

const statuses = z.array(z.union([z.string(), z.number(), z.boolean()]).transform(String)).max(50);
/** The service prepares the records: `request` creates a job, whose results are read once it is completed. */
const Job = z.strictObject({
  /** Selects the id in the response of `request`, for `{{ job.id }}`. */
  id: selector.default('id'),
  poll: JobRequest,
  /** Selects the status in the response of `poll`. */
  status: selector.default('status'),
  completed: statuses.min(1),
  failed: statuses.default([]),
  /** The service has dropped the job. It is created again, once. */
  expired: statuses.default([]),
  /** The job has no records. */
  empty: statuses.default([]),
  /** Absent: every other status. */
  running: statuses.optional(),
  /** The first pause between two polls. Each is half as long again as the one before. Retry-After takes precedence. */
  interval_seconds: z.number().min(0.01).max(3600).default(1),
  max_interval_seconds: z.number().min(0.01).max(3600).default(30),
  timeout_seconds: z.number().min(1).max(86_400).default(3600),
  /** The request for the result. */
  download: JobRequest.optional(),
  /** Selects the URL of the result, or a list of them, in the last response of `poll`. */
  urls: selector.optional(),
  /** Ends a job whose result is not needed: after an error, a stop or too long a time. */
  cancel: JobRequest.optional(),
});
export type Job = z.infer<typeof Job>;

const Stream = z.strictObject({
  name,
  description: z.string().max(2000).nullable().default(null),
  request: z.strictObject(requestOf(['GET', 'POST', 'PUT'], inRequest)),
  job: Job.optional(),
  /** How responses are written. */
  format: z.enum(['json', 'json_lines', 'csv', 'xml']).default('json'),
  /** Of CSV. */
  delimiter: z.string().length(1).default(','),
  /** Selects the records in a response. */
  records: selector.default('@'),
  /** Each record is a parent: the rows are the items of a list in it. */
  items: z
    .strictObject({
      /** Selects the list in a record. */
      path: selector,
      /** Columns taken from the record: name in this stream to name in the record. */
      fields: z.record(name, name).default({}),
    })
    .optional(),
  /** Whether a read fails in which no response has anything at `records`. */
  missing_records: z.enum(['fail', 'empty']).default('fail'),
  errors: ErrorRules.optional(),
  pagination: Pagination.default({ type: 'none' }),
  primary_key: z.union([name, z.array(name).min(1).max(20)]).optional(),
  incremental: Incremental.optional(),
  parent: z
    .strictObject({
      stream: name,
      /** Columns taken from the parent's record: name in this stream to name in the parent. */
      fields: z.record(name, name).default({}),
    })
    .optional(),
  /** Absent: inferred from the first records. */
  schema: z.strictObject({ type: z.literal('object').optional(), properties: z.record(name, Property) }).optional(),
  infer_records: z.int().min(1).max(100_000).default(1000),
});
export type StreamDefinition = z.infer<typeof Stream>;

const Document = z.strictObject({
  version: z.literal(1).default(1),
  base_url: template('config'),
  /** Origins besides that of base_url that the URL of a next page may have. They receive the credentials. */
  allowed_origins: z.array(z.url()).max(20).default([]),
  headers: z.record(name, setting).default({}),
  /** For all streams, before their own. */
  errors: ErrorRules.default([]),
  authentication: Authentication.default({ type: 'none' }),
  rate_limit: z
    .strictObject({
      requests_per_second: z.number().positive().max(10_000).optional(),
      /** Concurrent requests of all streams together. */
      concurrency: z.int().min(1).max(20).default(2),
    })
    .default({ concurrency: 2 }),
  retries: z
    .strictObject({
      max_attempts: z.int().min(1).max(20).default(5),
      base_seconds: z.number().min(0.001).max(60).default(0.5),
      /** A longer pause that the service asks for ends the attempt, and a later attempt continues. */
      max_wait_seconds: z.number().min(0).max(3600).default(600),
    })
    .default({ max_attempts: 5, base_seconds: 0.5, max_wait_seconds: 600 }),
  timeout_seconds: z.number().min(0.1).max(600).default(60),
  max_page_bytes: z
    .int()
    .min(1024)
    .max(256 * 1024 * 1024)
    .default(32 * 1024 * 1024),
  streams: z.array(Stream).min(1).max(500),
});

export const DefinitionSchema = Document.superRefine((document, ctx) => {
  for (const [index, stream] of document.streams.entries()) {
    for (const [path, message] of streamProblems(document.streams, index)) {
      ctx.addIssue({ code: 'custom', path: ['streams', index, ...path], message: `${stream.name}: ${message}` });
    }
  }
});
export type Definition = z.infer<typeof Document>;

type Problem = [path: string[], message: string];

function streamProblems(streams: StreamDefinition[], index: number): Problem[] {
  const stream = streams[index] as StreamDefinition;
  const { pagination, incremental, parent, request, job } = stream;
  const references = referencesIn(JSON.stringify([request, job]));
  const paged = job ? referencesIn(JSON.stringify(job.download ?? {})) : references;
  const refersTo = (start: string) => references.some((one) => one === start || one.startsWith(`${start}.`));
  const problems: Problem[] = [];
  if (streams.findIndex((one) => one.name === stream.name) !== index)
    problems.push([['name'], 'another stream has the same name']);
  const carrier = CARRIERS[pagination.type];
  if (carrier && !paged.includes(carrier)) {
    problems.push([
      [job ? 'job' : 'request'],
      `the request must use {{ ${carrier} }}, or every page would be the first`,
    ]);
  }
  if (job && (job.download === undefined) === (job.urls === undefined))
    problems.push([['job'], 'a job needs either download or urls']);
  if (refersTo('parent') && !parent)
    problems.push([['request'], 'the request refers to a parent, but the stream has none']);
  if (!incremental && (refersTo('cursor') || refersTo('window'))) {
    problems.push([['request'], 'the request refers to a cursor, but the stream is not incremental']);
  }
  if (parent) problems.push(...parentProblems(streams, stream));
  if (incremental?.step_days && incremental.type !== 'time')
    problems.push([['incremental', 'step_days'], 'step_days needs a cursor of type time']);
  if (incremental?.step_days && incremental.start === undefined) {
    problems.push([['incremental', 'start'], 'step_days needs a start']);
  }
  if (incremental?.order === 'ascending' && parent) {
    problems.push([['incremental', 'order'], 'records of several parents have no common order']);
  }
  return problems;
}

const CARRIERS: Partial<Record<Pagination['type'], string>> = {
  page_number: 'page.number',
  offset: 'page.offset',
  cursor: 'page.token',
};

function parentProblems(streams: StreamDefinition[], stream: StreamDefinition): Problem[] {
  const seen = new Set([stream.name]);
  for (let above = stream.parent; above; ) {
    const { stream: wanted } = above;
    const found = streams.find((one) => one.name === wanted);
    if (!found) return [[['parent', 'stream'], `there is no stream "${wanted}"`]];
    if (seen.has(wanted)) return [[['parent', 'stream'], 'the stream is its own parent']];
    seen.add(wanted);
    above = found.parent;
  }
  return [];
}
