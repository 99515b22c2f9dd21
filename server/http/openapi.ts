import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiMediaTypeObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
} from 'zod-openapi';
import { appRouter } from '../router.ts';
import { IDEMPOTENCY_HEADER } from './idempotency.ts';
import { WEBHOOKS } from './openapi-webhooks.ts';
import { responsesOf } from './openapi-responses.ts';
import { acceptsIdempotencyKey, type ServedProcedure } from './rest.ts';

/** Sections of the API reference in order. The first pattern that matches the path counts. */
const SECTIONS: [name: string, paths: RegExp, description: string][] = [
  ['Network logs', /\/network_logs$/, 'Every request of the connectors of a run, as gzipped JSON Lines.'],
  ['Connections', /^\/connections\b/, 'Pipelines from a source to a destination, their runs and stream runs.'],
  ['Connectors', /^\/connectors\b/, 'Kinds of sources and destinations with their parameters.'],
  ['Sources and destinations', /^\/account_connectors\b/, 'Connectors with the settings of the account.'],
  ['Users', /^\/users\b/, 'Users of the account, and the calling user.'],
  ['Roles and permissions', /^\/roles\b/, 'Roles grant permissions to users.'],
  ['Automation', /^\/automation\b/, 'Events, the triggers that watch them, and the cases that triggers open.'],
  ['Billing', /^\/billing\b/, 'Plans, limits and usage.'],
];
const ADDITIONS = 'Additions';

const DESCRIPTION = `Pipelines that move data from sources to destinations.

Every request carries \`Authorization: Bearer <API key>\`. Errors are \`{detail, code}\`; with status 422,
\`{detail: [{loc, msg, type}]}\`. Requests are checked in this order: key, permission, shape, object, state, plan.`;

/**
 * The OpenAPI document. trpc-to-openapi knows neither the parts of a procedure's input nor its status, so it receives
 * operations built from the declarations of the routes.
 */
export function openApiDocument(served: readonly ServedProcedure[], base_path = '') {
  const paths: ZodOpenApiPathsObject = {};
  for (const one of served) {
    const { path, method } = one.endpoint;
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation(one) };
  }
  // Loaded with its first use: most processes of the API never write the document.
  const { generateOpenApiDocument } = require('trpc-to-openapi') as typeof import('trpc-to-openapi');
  const document = generateOpenApiDocument(appRouter, {
    title: 'Data pipelines',
    description: DESCRIPTION,
    version: '1.0.0',
    openApiVersion: '3.1.0',
    baseUrl: base_path || '/',
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'An API key, valid for 90 days.' } },
    filter: () => false,
    paths,
  });
  const { webhooks, components } = createDocument({
    openapi: '3.1.0',
    info: document.info,
    webhooks: WEBHOOKS,
  });
  return {
    ...document,
    webhooks,
    components: { ...document.components, schemas: { ...components?.schemas, ...document.components?.schemas } },
    info: { ...document.info, license: { name: 'MIT', identifier: 'MIT' } },
    tags: [
      ...SECTIONS.map(([name, , description]) => ({ name, description })),
      { name: ADDITIONS, description: 'Operations beside the original interface, marked with `x-addition`.' },
    ],
  };
}

function operation(served: ServedProcedure): ZodOpenApiOperationObject {
  const { name, procedure, endpoint } = served;
  const { params, query, body, consumes } = endpoint;
  const { summary, description } = procedure._def.meta?.openapi ?? {};
  const needed = procedure._def.meta?.needed;
  return {
    operationId: endpoint.operation_id ?? name.replaceAll('.', '_'),
    summary,
    description,
    tags: [endpoint.addition ? ADDITIONS : (SECTIONS.find(([, paths]) => paths.test(endpoint.path))?.[0] ?? 'Other')],
    ...(endpoint.addition && { 'x-addition': true }),
    security: endpoint.public ? [] : [{ bearer: [] }],
    ...(needed ? { 'x-required-permission': needed } : {}),
    requestParams: {
      ...(isEmpty(params) ? {} : { path: params }),
      ...(isEmpty(query) ? {} : { query }),
      ...(acceptsIdempotencyKey(endpoint) && {
        header: endpoint.errors.includes(412) ? IdempotencyHeader.extend(IfMatchHeader.shape) : IdempotencyHeader,
      }),
    },
    ...(body && {
      requestBody: { required: !body.safeParse(null).success, content: { [consumes]: mediaType(body) } },
    }),
    responses: responsesOf(served),
  };
}

/** Repeats the examples of the schema in the media type, where most tools look for them. */
function mediaType(body: z.ZodType): ZodOpenApiMediaTypeObject {
  const named = body instanceof z.ZodNullable ? (body.unwrap() as z.ZodType) : body;
  const examples = named.meta()?.examples ?? [];
  const entries = examples.map((value, index) => [`example_${index + 1}`, { value }]);
  return { schema: body, ...(entries.length > 0 && { examples: Object.fromEntries(entries) }) };
}

const IdempotencyHeader = z.object({
  [IDEMPOTENCY_HEADER]: z
    .string()
    .regex(/^[\x20-\x7e]{1,255}$/)
    .optional()
    .meta({
      description:
        'Within 24 hours, the same request of the same user with the same key runs once. Repetitions get the stored ' +
        'response, with `Idempotency-Replayed: true`. A different request with the key is 400 ' +
        '`idempotency_key_reused`. Successes and 400, 402 and 404 are stored; after other responses the key can be ' +
        'used again.',
    }),
});

const IfMatchHeader = z.object({
  'If-Match': z.string().optional().meta({
    description: 'The ETag of the last read. If the object has changed since, the update is rejected with 412.',
  }),
});

const isEmpty = (schema: z.ZodObject) => Object.keys(schema.shape).length === 0;
