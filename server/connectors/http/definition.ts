import { z } from 'zod';
import { name, parseYaml, pathText, rememberLast, selector, template } from '../kits/rest/document.ts';
import { referencesIn, templateProblem } from '../kits/rest/template.ts';

const OF_ROW = ['row', 'key', 'found'] as const;
const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET'] as const;

const Request = (method: (typeof METHODS)[number]) =>
  z.strictObject({
    method: z.enum(METHODS).default(method),
    path: template(...OF_ROW),
    query: z.record(name, template(...OF_ROW)).default({}),
    headers: z.record(name, template(...OF_ROW)).default({}),
    /** JSON. Any text in it may contain references. Absent: the row, or the list of rows. */
    body: z.json().optional(),
    /** Rows in one request. */
    rows: z.int().min(1).max(10_000).default(1),
    /** Selects the rejected rows, or their number, in a successful response. */
    rejected: selector.optional(),
    /** Selects the position of a row, from 0, in an entry of `rejected`. */
    rejected_row: selector.optional(),
    /** The service does not have the row: an update creates it, and a delete is done. */
    missing: z.array(z.int().min(400).max(499)).max(20).default([404, 410]),
  });
export type RequestDefinition = z.infer<ReturnType<typeof Request>>;

const ObjectDefinition = z.strictObject({
  /** The destination table of the stream. Absent: all streams. */
  table: name.optional(),
  search: z
    .strictObject({
      method: z.enum(['GET', 'POST']).default('GET'),
      path: template('row', 'key'),
      query: z.record(name, template('row', 'key')).default({}),
      headers: z.record(name, template('row', 'key')).default({}),
      body: z.json().optional(),
      /** Selects the record, or a list of records, in the response. */
      record: selector.default('@'),
    })
    .optional(),
  upsert: Request('PUT').optional(),
  create: Request('POST').optional(),
  update: Request('PATCH').optional(),
  delete: Request('DELETE').optional(),
});
export type ObjectDefinition = z.infer<typeof ObjectDefinition>;

const Definition = z
  .strictObject({ version: z.literal(1).default(1), objects: z.array(ObjectDefinition).min(1).max(500) })
  .superRefine(({ objects }, ctx) => {
    for (const [index, object] of objects.entries()) {
      for (const [path, message] of problemsOf(objects, index, object)) {
        ctx.addIssue({ code: 'custom', path: ['objects', index, ...path], message });
      }
    }
  });
export type WriteDefinition = z.infer<typeof Definition>;

type Problem = [path: string[], message: string];

function problemsOf(objects: ObjectDefinition[], index: number, object: ObjectDefinition): Problem[] {
  const problems: Problem[] = [];
  const { upsert, create, update, search } = object;
  if (upsert ? create || update : !create || !update) {
    problems.push([[], 'an object needs either upsert, or create and update']);
  }
  if (objects.findIndex(({ table }) => table === object.table) !== index) {
    problems.push([['table'], 'two objects have the same table']);
  }
  for (const kind of ['upsert', 'create', 'update', 'delete'] as const) {
    const request = object[kind];
    if (request) problems.push(...requestProblems(kind, request, search !== undefined));
  }
  return problems;
}

function requestProblems(kind: string, request: RequestDefinition, searches: boolean): Problem[] {
  const { path, query, headers, body, rows } = request;
  const roots = (part: unknown) => referencesIn(JSON.stringify(part ?? null)).map((one) => one.split('.')[0] ?? '');
  const inAddress = roots([path, query, headers]);
  const inBody = roots(body);
  const problem = templateProblem(JSON.stringify(body ?? null), [...OF_ROW, 'rows']);
  const problems: Problem[] = problem ? [[[kind, 'body'], problem]] : [];
  const isFound = [...inAddress, ...inBody].includes('found');
  if (isFound && !searches) problems.push([[kind], '{{ found }} needs a search']);
  if (isFound && kind === 'create') problems.push([[kind], 'a row is created when nothing is found']);
  if (rows === 1) return problems;
  const single = [...inAddress, ...inBody].find((root) => root !== 'rows');
  if (single)
    problems.push([
      [kind],
      `{{ ${single} }} is one row, and the request has up to ${rows}. Use {{ rows }} in the body`,
    ]);
  if (searches && kind !== 'delete') problems.push([[kind, 'rows'], 'rows that are searched are sent one by one']);
  return problems;
}

const MAX_PROBLEMS = 10;

export type ParsedWriteDefinition =
  | { definition: WriteDefinition; problem: null }
  | { definition: null; problem: string };

/** Parses a definition in YAML or JSON. A problem names line and path. */
export const parseDefinition = rememberLast((text: string): ParsedWriteDefinition => {
  const refuse = (problem: string): ParsedWriteDefinition => ({ definition: null, problem });
  const { document, problem } = parseYaml(text);
  if (!document) return refuse(problem);
  const { value, lineOf } = document;
  const result = Definition.safeParse(value);
  if (result.success) return { definition: result.data, problem: null };
  const issues = result.error.issues.slice(0, MAX_PROBLEMS);
  return refuse(issues.map((one) => `Line ${lineOf(one.path)}, ${pathText(one.path)}: ${messageOf(one)}`).join('; '));
});

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') return `unknown setting "${issue.keys.join('", "')}"`;
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) return 'this setting is required';
  return issue.message;
}

/** The requests for the rows of a table. */
export const objectFor = ({ objects }: WriteDefinition, table: string): ObjectDefinition | undefined =>
  objects.find((object) => object.table === table) ?? objects.find((object) => object.table === undefined);
