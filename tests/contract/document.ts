import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { openApiDocument } from '../../server/http/openapi.ts';
import { proceduresOf } from '../../server/http/rest.ts';
import { appRouter, restRouter } from '../../server/router.ts';

export type Json = any;

/** One operation of the document, as it is served. */
export interface Operation {
  /** `POST /connections` */
  name: string;
  method: string;
  path: string;
  told: Json;
}

/** A schema of the document, seen through references. */
export interface Schema {
  [keyword: string]: Json;
}

export interface Contract {
  document: Json;
  operations: Operation[];
  /** The schema behind a reference, merged with the keys beside the reference. */
  resolve(schema: Schema): Schema;
  /** The violations of the document in an answer; empty: none. */
  problemsOf(operation: Operation, answer: { status: number; headers: Headers; text: string }): string[];
}

/** The OpenAPI document as served, and a validator of answers. */
export function readContract(): Contract {
  const document: Json = JSON.parse(JSON.stringify(openApiDocument(proceduresOf([appRouter, restRouter]))));
  const operations = Object.entries<Record<string, Json>>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, told]) => {
      const upper = method.toUpperCase();
      return { name: `${upper} ${path}`, method: upper, path, told };
    }),
  );
  const ajv = new Ajv2020({ strict: false, allErrors: false, validateFormats: true });
  // Formats for the size of a number or for bytes have no meaning in JSON.
  addFormats.default(ajv).addFormat('int64', true).addFormat('binary', true);
  ajv.addSchema({ $id: 'contract', components: document.components });
  const compiled = new Map<Schema, ReturnType<typeof ajv.compile>>();
  const check = (schema: Schema, value: unknown): string[] => {
    const validate = compiled.get(schema) ?? ajv.compile(within(schema));
    compiled.set(schema, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  };
  return {
    document,
    operations,
    resolve: ({ $ref, ...rest }) =>
      $ref === undefined ? rest : { ...document.components.schemas[$ref.split('/').at(-1)], ...rest },
    problemsOf: (operation, answer) => problemsOf(operation.told.responses[answer.status], answer, check),
  };
}

/** Rewrites the references of a part of the document to point into the whole document. */
const within = (schema: Schema): Schema =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"contract#/components/'));

function problemsOf(
  told: Json,
  { status, headers, text }: { status: number; headers: Headers; text: string },
  check: (schema: Schema, value: unknown) => string[],
): string[] {
  if (!told) return [`${status} is not in the document: ${text.slice(0, 500)}`];
  const missing = Object.entries<Json>(told.headers ?? {})
    .filter(([name, header]) => header.required && !headers.has(name))
    .map(([name]) => `no header ${name}`);
  if (!told.content) return text === '' ? missing : [...missing, `${status} has a body`];
  const type = headers.get('content-type')?.split(';')[0] ?? '';
  const media = told.content[type];
  if (!media) return [...missing, `${status} has the content type "${type}"`];
  if (type !== 'application/json') return missing;
  return [
    ...missing,
    ...check(media.schema, JSON.parse(text)).map((problem) => `${status} ${problem}: ${text.slice(0, 500)}`),
  ];
}
