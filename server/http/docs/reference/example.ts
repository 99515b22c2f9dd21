import type { oas31 } from 'zod-openapi';
import type { ApiDocument, ReferenceOperation } from './groups.ts';

const EXAMPLE_ID = '019a0000-0000-7000-8000-000000000001';
/** Values that say more than the words `string` and `source`. */
const EXAMPLES: Record<string, unknown> = {
  connector_name: 'postgres',
  parameter_name: 'host',
  start_date: '2026-01-01',
};

/** The request that code samples send. */
export interface ExampleRequest {
  path: Record<string, unknown>;
  query: Record<string, unknown>;
  /** Undefined without a body. */
  body: unknown;
}

/** Values of all path parameters, of required query parameters, and the documented example of the body. */
export function exampleRequest({ told }: ReferenceOperation, document: ApiDocument): ExampleRequest {
  const values = (place: string) =>
    Object.fromEntries(
      (told.parameters as oas31.ParameterObject[] | undefined)
        ?.filter((one) => one.in === place && one.required)
        .map((one) => [one.name, exampleParameter(one, document)]) ?? [],
    );
  return { path: values('path'), query: values('query'), body: exampleBody(told, document) };
}

function exampleParameter({ name, schema }: oas31.ParameterObject, document: ApiDocument): unknown {
  if (name in EXAMPLES) return EXAMPLES[name];
  return name.endsWith('_id') ? EXAMPLE_ID : exampleOf(schema!, document);
}

function exampleBody({ requestBody }: oas31.OperationObject, document: ApiDocument): unknown {
  const [media] = Object.values((requestBody as oas31.RequestBodyObject | undefined)?.content ?? {});
  if (!media) return undefined;
  const [first] = Object.values(media.examples ?? {}) as oas31.ExampleObject[];
  if (first) return first.value;
  const made = exampleOf(media.schema!, document, { skipNonRequired: true });
  return withIds(made);
}

/** Ids that look like ids. */
const withIds = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(
        Object.entries(value).map(([key, inner]) => [key, key.endsWith('_id') ? EXAMPLE_ID : withIds(inner)]),
      )
    : value;

/** A value of the schema; the same at every call. */
export function exampleOf(schema: object, document: ApiDocument, options: { skipNonRequired?: boolean } = {}): unknown {
  // Loaded with its first use.
  const { sample } = require('openapi-sampler') as typeof import('openapi-sampler');
  return sample(schema, { ...options, quiet: true, maxSampleDepth: 6 }, document);
}
