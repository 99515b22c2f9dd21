import fc from 'fast-check';
import { JUNK, nearly, valuesOf } from './arbitrary.ts';
import type { Contract, Json, Operation } from './document.ts';
import type { World } from './world.ts';

/** A request to send. Ids are named by kind and place, because deletions change their objects. */
export interface Case {
  caller: 'administrator' | 'viewer' | 'nobody';
  path: string;
  query: string;
  headers: Record<string, string>;
  body: string | FormData | undefined;
}

const UNKNOWN = '01900000-0000-7000-8000-000000000000';
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** Requests to one operation: valid, nearly valid and broken ones, for own, foreign and unknown objects. */
export function casesOf(
  contract: Contract,
  operation: Operation,
  { own, foreign }: { own: World; foreign: World },
): fc.Arbitrary<Case> {
  const values = valuesOf(contract, own);
  const parameters: Json[] = operation.told.parameters;
  const inPath = parameters.filter((one) => one.in === 'path');
  const inQuery = parameters.filter((one) => one.in === 'query');
  const id = ({ name, schema }: Json) =>
    fc.oneof(
      { weight: 7, arbitrary: own[name] ? fc.constantFrom(...own[name]) : values(schema, name) },
      { weight: 1, arbitrary: foreign[name] ? fc.constantFrom(...foreign[name]) : fc.constant(UNKNOWN) },
      { weight: 1, arbitrary: fc.constant(UNKNOWN) },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }) },
    );
  const path = fc
    .tuple(...inPath.map(id))
    .map((ids) =>
      inPath.reduce((text, { name }, at) => text.replace(`{${name}}`, segment(String(ids[at]))), operation.path),
    );
  const argument = ({ name, schema, required }: Json) =>
    fc.oneof(
      {
        weight: required ? 6 : 2,
        arbitrary: values(schema, name).map((value) => [value].flat().map((one) => [name, one])),
      },
      { weight: required ? 1 : 5, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: JUNK.map((value) => [[name, value]]) },
    );
  const unknownKey = fc.oneof(
    { weight: 15, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.constant([['page', 2]]) },
  );
  const query = fc.tuple(...inQuery.map(argument), unknownKey).map((lists) => search(lists.flat() as [string, Json][]));
  return fc.record({
    caller: fc.oneof(
      { weight: 18, arbitrary: fc.constant('administrator' as const) },
      { weight: 1, arbitrary: fc.constant('viewer' as const) },
      { weight: 1, arbitrary: fc.constant('nobody' as const) },
    ),
    path,
    query,
    headers: headersOf(operation),
    body: bodiesOf(operation, values, own),
  });
}

/** Without the segments that URL parsing removes. */
function segment(text: string): string {
  const encoded = encodeURIComponent(text.toWellFormed());
  return /^\.{0,2}$/.test(encoded) ? 'dots' : encoded;
}

function search(pairs: [string, Json][]): string {
  const text = pairs.map(([name, value]) => [
    name,
    typeof value === 'string' ? value.toWellFormed() : JSON.stringify(value),
  ]);
  return text.length === 0 ? '' : `?${new URLSearchParams(text as [string, string][]).toString()}`;
}

function headersOf({ told }: Operation): fc.Arbitrary<Record<string, string>> {
  const takesKey = told.parameters.some((one: Json) => one.name === 'Idempotency-Key');
  const none = { weight: 8, arbitrary: fc.constant({}) };
  if (!takesKey) return fc.oneof(none);
  const key = fc
    .constantFrom('same', 'x'.repeat(256), 'ключ')
    .map((value) => ({ 'idempotency-key': encodeURI(value) }));
  return fc.oneof(
    none,
    { weight: 1, arbitrary: key },
    { weight: 1, arbitrary: fc.uuid().map((value) => ({ 'idempotency-key': value })) },
  );
}

function bodiesOf({ told }: Operation, values: ReturnType<typeof valuesOf>, world: World): fc.Arbitrary<Case['body']> {
  const content = told.requestBody?.content;
  if (!content)
    return fc.oneof(
      { weight: 5, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom('{}', '[', 'x') },
    );
  if (content['multipart/form-data']) return formsOf();
  const { schema, examples } = content['application/json'];
  const valid = values(schema);
  const example = fc
    .tuple(fc.constantFrom(...Object.values<Json>(examples ?? { none: { value: {} } })), fc.uuid())
    .map(([{ value }, unique]) => adapted(value, world, unique));
  const broken = fc.constantFrom('[]', '"x"', '7', 'null', '{', '', '{"a":1}{', '\ufeff{}', '{"__proto__":{}}');
  return fc.oneof(
    { weight: 4, arbitrary: valid.map((value) => JSON.stringify(value)) },
    { weight: 2, arbitrary: nearly(valid).map((value) => JSON.stringify(value)) },
    { weight: 2, arbitrary: nearly(example).map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: example.map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: broken },
    { weight: 1, arbitrary: fc.constant(undefined) },
  );
}

/** An example with the ids of this world and a free name. */
function adapted(value: Json, world: World, unique: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      key === 'name' && typeof one === 'string' ? unique : typeof one === 'string' ? (world[key]?.[0] ?? one) : one,
    ]),
  );
}

function formsOf(): fc.Arbitrary<FormData> {
  const name = fc.constantFrom('file', 'file', 'file', 'picture');
  const bytes = fc.oneof(fc.constant(new Uint8Array(PNG)), fc.uint8Array({ maxLength: 200 }));
  return fc.array(fc.tuple(name, bytes, fc.boolean()), { maxLength: 2 }).map((parts) => {
    const form = new FormData();
    for (const [part, content, isFile] of parts) {
      if (isFile) form.append(part, new File([new Uint8Array(content)], 'picture.png'));
      else form.append(part, 'text');
    }
    return form;
  });
}
