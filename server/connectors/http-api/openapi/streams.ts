import { bare, type Json, type OpenApiDocument, selectorOf } from './document.ts';
import { guessPagination } from './guess-pagination.ts';
import type { LeftOut, ListOperation, Parameter } from './operations.ts';

export interface DraftedStream {
  definition: Json & { name: string };
  path: string;
  /** What was guessed, to be confirmed by a user. */
  assumptions: string[];
}

const MAX_NAME_LENGTH = 255;
const MAX_DESCRIPTION_LENGTH = 500;
const PARAMETER = /\{([^{}]+)\}/g;
/** Segments that say nothing about the records. */
const PREFIX = /^(api|rest|v\d+(\.\d+)*)$/i;
const SINCE = new Set(
  'since updatedsince updatedafter modifiedsince modifiedafter updatedatmin updatedatgte updatedatgt updatedatfrom updatedfrom lastmodifiedafter lastmodifiedsince changedsince minupdatedat startmodified'.split(
    ' ',
  ),
);
const UPDATED = new Set(
  'updatedat updatedon updated modifiedat modifiedon modified lastmodified lastmodifiedat lastupdated lastupdatedat lastmodifieddate updateddate modifieddate updatedtime dateupdated datemodified'.split(
    ' ',
  ),
);

interface Placed {
  operation: ListOperation;
  stream: DraftedStream;
  key: string | undefined;
}

/** A stream for each operation, parents before their children. */
export function draftStreams(
  document: OpenApiDocument,
  operations: readonly ListOperation[],
): { streams: DraftedStream[]; left_out: LeftOut[] } {
  const placed = new Map<string, Placed>();
  const names = new Set<string>();
  const left_out: LeftOut[] = [];
  const shortestFirst = operations.toSorted((a, b) => segmentsOf(a.path).length - segmentsOf(b.path).length);
  for (const operation of shortestFirst) {
    const address = addressOf(document, operation, placed);
    if (typeof address === 'string') {
      left_out.push({ path: operation.path, reason: address });
      continue;
    }
    const key = keyOf(document, operation);
    const definition = definitionOf(document, operation, { address, key, name: nameOf(operation.path, names) });
    placed.set(trimmed(operation.path), { operation, key, stream: { path: operation.path, ...definition } });
  }
  return { streams: [...placed.values()].map(({ stream }) => stream), left_out };
}

interface Address {
  path: string;
  parent: { stream: string; fields: Record<string, string> } | null;
}

/** The path with its parameters: one is taken from the stream of the path before it, the others are settings. */
function addressOf(
  document: OpenApiDocument,
  { path, item }: ListOperation,
  placed: ReadonlyMap<string, Placed>,
): Address | string {
  const parents = [...path.matchAll(PARAMETER)].flatMap(({ index, 1: name = '' }) => {
    const parent = placed.get(trimmed(path.slice(0, index)));
    return parent ? [{ name, parent }] : [];
  });
  const nearest = parents.at(-1);
  if (!nearest) return { path: path.replaceAll(PARAMETER, (_, name: string) => setting(name)), parent: null };
  const fields = document.properties(nearest.parent.operation.item).map(([name]) => name);
  const own = new Set(document.properties(item).map(([name]) => name));
  const columns: Record<string, string> = {};
  const unknown: string[] = [];
  const filled = path.replaceAll(PARAMETER, (_, name: string) => {
    if (!parents.some((one) => one.name === name)) return setting(name);
    const field =
      fields.find((one) => bare(one) === bare(name)) ?? (name === nearest.name ? nearest.parent.key : undefined);
    if (field === undefined || !/^[\w-]+$/.test(field)) unknown.push(name);
    else {
      const column = bare(name) === 'id' ? `${singular(nearest.parent.stream.definition.name)}_id` : name;
      if (!own.has(column)) columns[column] = field;
    }
    return `{{ parent.${field} }}`;
  });
  if (unknown.length > 0)
    return `The records of ${nearest.parent.operation.path} have no value for ${unknown.join(', ')}`;
  return { path: filled, parent: { stream: nearest.parent.stream.definition.name, fields: columns } };
}

function definitionOf(
  document: OpenApiDocument,
  operation: ListOperation,
  { address, key, name }: { address: Address; key: string | undefined; name: string },
): { definition: DraftedStream['definition']; assumptions: string[] } {
  const { summary, records } = operation;
  const assumptions: string[] = [];
  const pages = guessPagination(document, operation, key);
  assumptions.push(pages ? `Pages by ${pages.because}` : 'One page: no parameter or field for further pages was found');
  const changes = incrementalOf(document, operation);
  if (changes) assumptions.push(`Incremental by the parameter ${changes.parameter} and the field ${changes.field}`);
  assumptions.push(key === undefined ? 'No primary key was found' : `Primary key ${key}`);
  if (address.parent) assumptions.push(`Read for each record of ${address.parent.stream}`);
  const query = { ...requiredOf(operation, 'query', pages?.query ?? {}), ...pages?.query, ...changes?.query };
  const headers = requiredOf(operation, 'header', {});
  const definition = {
    name,
    ...(summary && { description: summary.slice(0, MAX_DESCRIPTION_LENGTH) }),
    ...(address.parent && { parent: address.parent }),
    request: {
      path: address.path,
      ...(Object.keys(query).length > 0 && { query }),
      ...(Object.keys(headers).length > 0 && { headers }),
    },
    ...(records.length > 0 && { records: selectorOf(records) }),
    ...(pages && { pagination: pages.pagination }),
    ...(key !== undefined && { primary_key: key }),
    ...(changes && { incremental: changes.incremental }),
  };
  return { definition, assumptions };
}

const GENERAL_HEADERS = new Set(['accept', 'authorization', 'contenttype', 'useragent']);

/** Required parameters without a default become settings. */
function requiredOf(
  { parameters }: ListOperation,
  place: string,
  known: Record<string, string>,
): Record<string, string> {
  const wanted = parameters.filter(
    (one) =>
      one.in === place &&
      one.required &&
      one.schema.default === undefined &&
      !Object.hasOwn(known, one.name) &&
      !(place === 'header' && GENERAL_HEADERS.has(bare(one.name))),
  );
  return Object.fromEntries(wanted.map(({ name }) => [name, setting(name)]));
}

function incrementalOf(document: OpenApiDocument, { parameters, item }: ListOperation) {
  const parameter = parameters.find((one) => one.in === 'query' && SINCE.has(bare(one.name)));
  const field = document.properties(item).find(([name]) => UPDATED.has(bare(name)));
  if (!parameter || !field) return null;
  const format = formatOf(parameter);
  return {
    parameter: parameter.name,
    field: field[0],
    query: { [parameter.name]: '{{ window.start }}' },
    incremental: { cursor_field: field[0], ...(format !== 'iso' && { format }) },
  };
}

function formatOf({ schema }: Parameter): 'iso' | 'date' | 'unix' {
  if (schema.type === 'integer' || schema.type === 'number') return 'unix';
  return schema.format === 'date' ? 'date' : 'iso';
}

/** `id` and its synonyms, then the name of the records with `_id`. */
function keyOf(document: OpenApiDocument, { path, item }: ListOperation): string | undefined {
  const names = document.properties(item).map(([name]) => name);
  const last = singular(bare(segmentsOf(path).findLast((one) => !one.includes('{')) ?? ''));
  const wanted = ['id', 'uuid', 'guid', 'gid', `${last}id`, `${last}uuid`, 'key', 'code'];
  return wanted.map((one) => names.find((name) => bare(name) === one)).find((name) => name !== undefined);
}

function nameOf(path: string, taken: Set<string>): string {
  const words = segmentsOf(path).filter((one) => !one.includes('{') && !PREFIX.test(one));
  const clean = words.map((one) => one.replace(/\.json$/, '').replaceAll(/[^\w-]+/g, '_'));
  const candidates = clean.map((_, index) => clean.slice(clean.length - 1 - index).join('_'));
  const whole = (candidates.at(-1) ?? 'records').slice(0, MAX_NAME_LENGTH - 5);
  const numbered = Array.from({ length: taken.size + 1 }, (_, index) => `${whole}_${index + 2}`);
  const name = [...candidates, whole, ...numbered].find((one) => !taken.has(one) && one.length <= MAX_NAME_LENGTH)!;
  taken.add(name);
  return name;
}

const segmentsOf = (path: string): string[] => path.split('/').filter((one) => one !== '');
const trimmed = (path: string): string => `/${segmentsOf(path).join('/')}`.replace(/\.json$/, '');
const setting = (name: string): string => `{{ config.${name.replaceAll(/[^\w-]+/g, '_')} }}`;
const singular = (name: string): string =>
  name
    .replace(/ies$/, 'y')
    .replace(/(?<=(s|x|ch|sh))es$/, '')
    .replace(/(?<!s)s$/, '');
