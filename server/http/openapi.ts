import { generateOpenApiDocument } from 'trpc-to-openapi';
import { z } from 'zod';
import type { ZodOpenApiOperationObject, ZodOpenApiPathsObject, ZodOpenApiResponseObject } from 'zod-openapi';
import { appRouter } from '../router.ts';
import { IDEMPOTENCY_HEADER } from './idempotency.ts';
import { ErrorSchema, HTTPValidationError, StructuredErrorSchema } from './error-schemas.ts';
import { heedsIdempotencyKey, type ServedProcedure } from './rest.ts';

/** Sections of the reference, by the first segment of the path. */
const SECTIONS: Record<string, string> = {
  connections: 'Connections',
  connection_runs: 'Connections',
  connectors: 'Connectors',
  account_connectors: 'Sources and destinations',
  users: 'Users',
  roles: 'Roles',
  automation: 'Automation',
  billing: 'Billing',
};

const DESCRIPTION = `Pipelines that move data from sources to destinations.

Every request carries \`Authorization: Bearer <API key>\`. Errors are \`{detail, code}\`, those of status 422
\`{detail: [{loc, msg, type}]}\`. Checks come in this order: key, permission, shape, object, state, plan.`;

/**
 * The OpenAPI document of what is served. The library's own reading of a procedure knows neither the parts of its input
 * nor its status, so the operations are handed to it, made of the declarations that the routes are made of.
 */
export function openApiDocument(served: readonly ServedProcedure[]) {
  const paths: ZodOpenApiPathsObject = {};
  for (const one of served) {
    const { path, method } = one.endpoint;
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation(one) };
  }
  return generateOpenApiDocument(appRouter, {
    title: 'Data pipelines',
    description: DESCRIPTION,
    version: '1.0.0',
    openApiVersion: '3.1.0',
    baseUrl: '/',
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'An API key; valid for 90 days.' } },
    tags: [...new Set(Object.values(SECTIONS))],
    filter: () => false,
    paths,
  });
}

function operation({ name, procedure, endpoint }: ServedProcedure): ZodOpenApiOperationObject {
  const { params, query, body, consumes } = endpoint;
  const { summary, description } = procedure._def.meta?.openapi ?? {};
  const needed = procedure._def.meta?.needed;
  return {
    operationId: name.replaceAll('.', '_'),
    summary,
    description,
    tags: [SECTIONS[endpoint.path.split('/')[1]!] ?? 'Other'],
    security: [{ bearer: [] }],
    ...(needed ? { 'x-required-permission': needed } : {}),
    requestParams: {
      ...(isEmpty(params) ? {} : { path: params }),
      ...(isEmpty(query) ? {} : { query }),
      ...(heedsIdempotencyKey(endpoint) && { header: IdempotencyHeader }),
    },
    ...(body && {
      requestBody: {
        required: !body.safeParse(null).success,
        content: { [consumes]: { schema: body } },
      },
    }),
    responses: responses({ name, procedure, endpoint }),
  };
}

const IdempotencyHeader = z.object({
  [IDEMPOTENCY_HEADER]: z
    .string()
    .regex(/^[\x20-\x7e]{1,255}$/)
    .optional()
    .meta({
      description:
        'Within 24 hours the same request of the same user under one key is done once; later ones hear its answer ' +
        'again, with `Idempotency-Replayed: true`. Another request under the key is 400 `idempotency_key_reused`. ' +
        'Kept are successes, 400, 402 and 404; after other answers the key is free again.',
    }),
});

const isEmpty = (schema: z.ZodObject) => Object.keys(schema.shape).length === 0;

function responses(served: ServedProcedure): Record<`${1 | 2 | 3 | 4 | 5}${string}`, ZodOpenApiResponseObject> {
  const { method, params, query, body, consumes, errors, status, produces } = served.endpoint;
  const statuses = new Set<number>([401, 500, ...errors]);
  if (served.procedure._def.meta?.needed) statuses.add(403);
  if (!isEmpty(params)) statuses.add(404);
  if (body || !isEmpty(params) || !isEmpty(query)) statuses.add(422);
  if (body && consumes === 'application/json') statuses.add(413);
  // Of the Idempotency-Key.
  if (method === 'POST') for (const one of [400, 422]) statuses.add(one);
  const told = [...statuses].toSorted((a, b) => a - b).map((one) => [one, problem(one, produces !== null)]);
  return { [status]: success(served), ...Object.fromEntries(told) };
}

function success({ procedure, endpoint }: ServedProcedure): ZodOpenApiResponseObject {
  const description = endpoint.status === 201 ? 'Made' : endpoint.status === 204 ? 'Done, no body' : 'Successful';
  const headers = z.object({
    'X-Request-Id': z.string().meta({ description: 'Names this request in the log of the service.' }),
    ...('offset' in endpoint.query.shape && {
      'X-Total-Count': z.string().meta({ description: 'Size of the whole list.' }),
    }),
  });
  if (endpoint.status === 204) return { description, headers };
  if (endpoint.produces) {
    const schema = { type: 'string', format: 'binary' } as const;
    const content = Object.entries(endpoint.produces).map(([type, text]) => [
      type,
      { schema: { ...schema, description: text } },
    ]);
    return { description, headers, content: Object.fromEntries(content) };
  }
  const schema = procedure._def.output as z.ZodType;
  return { description, headers, content: { 'application/json': { schema } } };
}

const PROBLEMS: Record<number, string> = {
  400: 'The request cannot be done as things stand; `code` says why',
  401: 'The API key is missing, invalid or expired',
  402: 'The plan of the account does not allow it',
  403: 'A permission is missing: `required_permission`',
  404: 'There is no such object in this account',
  413: 'The body is larger than 1 MiB',
  422: 'The request has not the documented shape',
  500: 'Internal server error',
};

function problem(status: number, structured: boolean): ZodOpenApiResponseObject {
  const schema =
    status === 422 ? HTTPValidationError : status === 404 && structured ? StructuredErrorSchema : ErrorSchema;
  return { description: PROBLEMS[status] ?? 'Error', content: { 'application/json': { schema } } };
}
