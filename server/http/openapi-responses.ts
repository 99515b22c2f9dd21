import type { ZodOpenApiResponseObject } from 'zod-openapi';
import { ErrorSchema, HTTPValidationError, StructuredErrorSchema } from './error-schemas.ts';
import { acceptsIdempotencyKey, type ServedProcedure } from './rest.ts';
import { outputSchema } from '../api/trusted-output.ts';

type HeaderDocs = Record<
  string,
  { description?: string; required?: true; schema: { type: 'string' | 'integer'; minimum?: number; enum?: string[] } }
>;
type Responses = Record<`${1 | 2 | 3 | 4 | 5}${string}`, ZodOpenApiResponseObject>;

/** All responses of an operation, by status. */
export function responsesOf(served: ServedProcedure): Responses {
  const errors = statusesOf(served).map((status) => [status, problem(status, served.endpoint)]);
  return { [served.endpoint.status]: success(served), ...Object.fromEntries(errors) };
}

/** Error statuses. Unknown query parameters are 422 everywhere. */
function statusesOf({ procedure, endpoint }: ServedProcedure): number[] {
  // A public operation needs no key, but refuses a wrong one.
  const statuses = new Set<number>([401, 422, 500, ...endpoint.errors]);
  if (procedure._def.meta?.needed) statuses.add(403);
  if (Object.keys(endpoint.params.shape).length > 0) statuses.add(404);
  if (endpoint.body && endpoint.consumes === 'application/json') statuses.add(413);
  if (acceptsIdempotencyKey(endpoint)) for (const one of [400, 413]) statuses.add(one);
  return [...statuses].toSorted((a, b) => a - b);
}

const EVERYWHERE: HeaderDocs = {
  'X-Request-Id': {
    description: 'Identifies this request in the logs.',
    required: true,
    schema: { type: 'string' },
  },
};

const TOTAL: HeaderDocs = {
  'X-Total-Count': {
    description:
      'Number of items that match the filters, regardless of limit and offset. Exact up to 10,000, then an estimate.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
};

const LINK: HeaderDocs = {
  Link: { description: 'The `next` and `prev` pages, if there are any (RFC 8288).', schema: { type: 'string' } },
};

const ETAG: HeaderDocs = {
  ETag: { description: 'The revision, for `If-Match` of an update.', required: true, schema: { type: 'string' } },
};

const REPLAYED: HeaderDocs = {
  'Idempotency-Replayed': {
    description: 'This is the stored response to an earlier request with the same Idempotency-Key.',
    schema: { type: 'string', enum: ['true'] },
  },
};

const CHALLENGE: HeaderDocs = {
  'WWW-Authenticate': { required: true, schema: { type: 'string' } },
};

function success({ procedure, endpoint }: ServedProcedure): ZodOpenApiResponseObject {
  const description =
    endpoint.status === 201 ? 'Created' : endpoint.status === 204 ? 'Done, without a body' : 'Successful';
  const headers = {
    ...EVERYWHERE,
    ...('offset' in endpoint.query.shape && { ...TOTAL, ...LINK }),
    ...(endpoint.revisioned && ETAG),
    ...(acceptsIdempotencyKey(endpoint) && REPLAYED),
  };
  if (endpoint.status === 204) return { description, headers };
  if (endpoint.produces === null) {
    const schema = outputSchema(procedure._def.output);
    return { description, headers, content: { 'application/json': { schema } } };
  }
  const content = Object.entries(endpoint.produces).map(([type, text]) => [
    type,
    { schema: { type: 'string', format: 'binary', description: text } },
  ]);
  return { description, headers, content: Object.fromEntries(content) };
}

const PROBLEMS: Record<number, string> = {
  400: 'The request cannot be processed in the current state. `code` gives the reason',
  401: 'The API key is missing, invalid or expired',
  402: 'The billing plan does not allow it',
  403: 'The permission in `required_permission` is missing',
  404: 'The object does not exist in this account',
  412: 'The object has another revision than `If-Match` names',
  413: 'The body is larger than 1 MiB',
  422: 'The request does not match the documented shape',
  500: 'Internal server error',
};

function problem(status: number, { produces, max_body_bytes }: ServedProcedure['endpoint']): ZodOpenApiResponseObject {
  const schema =
    status === 422 ? HTTPValidationError : status === 404 && produces !== null ? StructuredErrorSchema : ErrorSchema;
  const headers = status === 401 ? { ...EVERYWHERE, ...CHALLENGE } : EVERYWHERE;
  const larger = status === 413 && max_body_bytes !== null;
  const description = larger ? `The body is larger than ${max_body_bytes / 1024 / 1024} MiB` : PROBLEMS[status];
  return { description: description ?? 'Error', headers, content: { 'application/json': { schema } } };
}
