import { bare, type Json, listOf, mayBe, objectOf, type OpenApiDocument, textOf } from './document.ts';

export interface Parameter {
  name: string;
  in: string;
  required: boolean;
  schema: Json;
}

/** A GET operation whose response has a list of records. */
export interface ListOperation {
  path: string;
  summary: string;
  parameters: Parameter[];
  /** Schema of the response, and where its records are. */
  response: Json;
  records: string[];
  item: Json;
  has_link_header: boolean;
}

export interface LeftOut {
  path: string;
  reason: string;
}

/** Names of the list in a response that has several. */
const LISTS = new Set(
  'data items results result records value values entries content rows list elements objects hits'.split(' '),
);
const MAX_LIST_DEPTH = 2;

/** The GET operations that return lists, and why the others do not become streams. */
export function listOperations(document: OpenApiDocument): { lists: ListOperation[]; left_out: LeftOut[] } {
  const lists: ListOperation[] = [];
  const left_out: LeftOut[] = [];
  for (const [path, value] of Object.entries(objectOf(document.root.paths))) {
    const item = document.resolve(value);
    const operation = objectOf(item.get);
    if (item.get === undefined) continue;
    const found = listOperation(document, { path, item, operation });
    if (typeof found === 'string') left_out.push({ path, reason: found });
    else lists.push(found);
  }
  return { lists, left_out };
}

function listOperation(
  document: OpenApiDocument,
  { path, item, operation }: { path: string; item: Json; operation: Json },
): ListOperation | string {
  const answer = successOf(document, operation);
  if (answer === null) return 'The document describes no JSON response';
  const response = document.schema(answer.schema);
  const found = findList(document, response, { name: bare(path.split('/').at(-1) ?? ''), depth: 0 });
  if (found === null) return 'The response is described as a single object, without a list';
  if (!mayBe(found.item, 'object')) return 'The response is a list of single values';
  return {
    path,
    summary: textOf(operation.summary) || textOf(operation.description),
    parameters: parametersOf(document, [...listOf(item.parameters), ...listOf(operation.parameters)]),
    response,
    records: found.path,
    item: found.item,
    has_link_header: Object.keys(answer.headers).some((name) => bare(name) === 'link'),
  };
}

function successOf(document: OpenApiDocument, operation: Json): { schema: unknown; headers: Json } | null {
  const responses = objectOf(operation.responses);
  const status = ['200', '2XX', '2xx', 'default'].find((one) => Object.hasOwn(responses, one));
  if (status === undefined) return null;
  const response = document.resolve(responses[status]);
  const content = objectOf(response.content);
  const type = Object.keys(content).find((one) => /\bjson\b/i.test(one) || one === '*/*');
  // Swagger 2 has the schema beside the headers.
  const schema = type === undefined ? response.schema : objectOf(content[type]).schema;
  return schema === undefined ? null : { schema, headers: objectOf(response.headers) };
}

/** Those of an operation replace those of its path. */
function parametersOf(document: OpenApiDocument, all: unknown[]): Parameter[] {
  const found = new Map<string, Parameter>();
  for (const one of all) {
    const parameter = document.resolve(one);
    const [name, place] = [textOf(parameter.name), textOf(parameter.in)];
    if (name === '') continue;
    // Swagger 2 has the keys of the schema in the parameter.
    const schema = parameter.schema === undefined ? parameter : document.schema(parameter.schema);
    found.set(`${place} ${name}`, { name, in: place, required: parameter.required === true, schema });
  }
  return [...found.values()];
}

function findList(
  document: OpenApiDocument,
  schema: Json,
  { name, depth }: { name: string; depth: number },
): { path: string[]; item: Json } | null {
  if (schema.items !== undefined) return { path: [], item: document.schema(schema.items) };
  const properties = document.properties(schema);
  const lists = properties.filter(([, one]) => one.items !== undefined);
  const [chosen] =
    lists.length === 1
      ? lists
      : [...lists.filter(([one]) => bare(one) === name), ...lists.filter(([one]) => LISTS.has(bare(one)))];
  // An object with an `id` is a record itself, whatever lists it has.
  const isRecord = properties.some(([one]) => bare(one) === 'id');
  if (chosen && !isRecord) return { path: [chosen[0]], item: document.schema(chosen[1].items) };
  if (depth === MAX_LIST_DEPTH || isRecord) return null;
  for (const [key, inner] of properties) {
    if (!LISTS.has(bare(key)) && !['response', 'embedded', 'payload', name].includes(bare(key))) continue;
    const found = findList(document, inner, { name, depth: depth + 1 });
    if (found) return { path: [key, ...found.path], item: found.item };
  }
  return null;
}
