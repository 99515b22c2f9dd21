import type { z } from 'zod';
import { RequestShapeError, type ValidationIssue } from '../platform/errors.ts';
import { coerceText } from './query-text.ts';
import { refuseUnstorable } from './reject-unstorable.ts';
import { toValidationIssues } from './validation-issues.ts';

/** The declared parts of an endpoint's input. */
export interface Declared {
  params: z.ZodObject;
  query: z.ZodObject;
  /** The input key that holds the whole query. Null: its keys are merged with those of the other parts. */
  query_key: string | null;
  body: z.ZodType | null;
  /** As `query_key`, for the body. */
  body_key: string | null;
}

/** A REST request with its parts kept separate, so that a key of the body cannot replace one of the path. */
export class RequestParts {
  constructor(
    readonly params: Record<string, unknown>,
    /** As in the URL: text, or a list for a repeated key. */
    readonly query: Record<string, unknown>,
    /** Undefined when there is none. */
    readonly body: unknown,
  ) {}
}

/** Has the shape of a zod type, so that tRPC accepts it. */
export interface InputParser<Input, Output> {
  _input: Input;
  _output: Output;
  /** @throws RequestShapeError with every problem of all parts. */
  parse(raw: unknown): Output;
}

/** Parses the flat input of a tRPC call or the parts of a REST request into the flat input. */
export function inputParser<Input, Output>(declared: Declared): InputParser<Input, Output> {
  const body = declared.body && strict(declared.body);
  const opaque = isOpaque(declared.params);
  const withoutQuery = parsedNothing(declared.query);
  const parse = (raw: unknown): Output => {
    const parts = raw instanceof RequestParts ? textParts(raw, declared) : splitFlat(raw, declared);
    const issues: ValidationIssue[] = [];
    const take = (where: string, schema: z.ZodType, value: unknown): unknown => {
      // Path parameters are not checked: a name that cannot be stored matches nothing, which is 404.
      const refused = where === 'path' ? null : refuseUnstorable(value, [where]);
      if (refused) return void issues.push(refused);
      const result = schema.safeParse(value);
      if (result.success) return result.data;
      issues.push(...toValidationIssues(result.error.issues, { where, value }));
    };
    const params = opaque && raw instanceof RequestParts ? parts.params : take('path', declared.params, parts.params);
    const isBare = withoutQuery !== null && Object.keys(parts.query).length === 0;
    const query = isBare ? { ...withoutQuery } : take('query', declared.query, parts.query);
    const taken = body ? take('body', body, parts.body) : undefined;
    if (issues.length > 0) throw new RequestShapeError(issues);
    return Object.assign({}, under(declared.body_key, taken), under(declared.query_key, query), params) as Output;
  };
  // tRPC uses _input and _output as types only.
  return { parse } as InputParser<Input, Output>;
}

/** Whether every parameter of a path passes as it is. Reading an object then takes a tenth less of the processor. */
function isOpaque({ shape }: z.ZodObject): boolean {
  return Object.values(shape).every((type) => {
    const { def } = (type as unknown as z.core.$ZodTypes)._zod;
    return def.type === 'string' && (def.checks ?? []).length === 0 && !('format' in def);
  });
}

/** What an empty query is parsed into; null: it is refused, or holds values that requests must not share. */
function parsedNothing(query: z.ZodObject): Record<string, unknown> | null {
  const { success, data } = query.safeParse({});
  return success && Object.values(data).every((value) => typeof value !== 'object' || value === null) ? data : null;
}

const under = (key: string | null, value: unknown) => (key === null ? value : { [key]: value });

/**
 * Two parts of an input must not share a key: one value would silently replace the other.
 * @throws Error naming the endpoint and the keys.
 */
export function refuseSharedKeys(endpoint: string, declared: Declared): void {
  const { params, query, query_key, body, body_key } = declared;
  const parts = [
    Object.keys(params.shape),
    query_key === null ? Object.keys(query.shape) : [query_key],
    body_key === null ? keysOf(body) : [body_key],
  ];
  const keys = parts.flat();
  const shared = keys.filter((key, index) => keys.indexOf(key) !== index);
  if (shared.length > 0)
    throw new Error(`${endpoint}: two parts of the input share ${shared.join(', ')}. Set query_key`);
}

/** The top-level keys of a body: of each member of a union, and of what a wrapper such as `nullable` holds. */
export function keysOf(schema: z.ZodType | null): string[] {
  if (schema === null) return [];
  const { def } = (schema as unknown as z.core.$ZodTypes)._zod;
  if (def.type === 'object') return Object.keys(def.shape);
  if (def.type === 'union') return [...new Set(def.options.flatMap((option) => keysOf(option as z.ZodType)))];
  if (def.type === 'pipe') return keysOf(def.in as z.ZodType);
  return 'innerType' in def ? keysOf(def.innerType as z.ZodType) : [];
}

/** Rejects unknown keys at the top level of every body, whatever the schema allows. */
function strict(schema: z.ZodType): z.ZodType {
  return 'strict' in schema && typeof schema.strict === 'function' ? schema.strict() : schema;
}

function textParts(parts: RequestParts, { params, query, body }: Declared): RequestParts {
  return new RequestParts(
    coerceText(params, parts.params),
    coerceText(query, parts.query),
    parts.body === undefined && acceptsNull(body) ? null : parts.body,
  );
}

/** Keys that belong to no other part go to the body, whose schema may reject them. */
function splitFlat(raw: unknown, declared: Declared): RequestParts {
  if (raw !== undefined && (typeof raw !== 'object' || raw === null || Array.isArray(raw))) {
    throw new RequestShapeError([{ loc: ['body'], msg: 'Input should be a valid dictionary', type: 'dict_type' }]);
  }
  const params: [string, unknown][] = [];
  const query: [string, unknown][] = [];
  const body: [string, unknown][] = [];
  for (const entry of Object.entries(raw ?? {})) {
    if (entry[0] in declared.params.shape) params.push(entry);
    else if (entry[0] === declared.query_key) query.push(...Object.entries(entry[1] ?? {}));
    else if (declared.query_key === null && entry[0] in declared.query.shape) query.push(entry);
    else body.push(entry);
  }
  const whole = declared.body_key !== null && body.every(([key]) => key === declared.body_key);
  const bodyValue = whole
    ? (body[0]?.[1] ?? (acceptsNull(declared.body) ? null : undefined))
    : Object.fromEntries(body);
  const leftOver = declared.body === null ? body : [];
  return new RequestParts(Object.fromEntries(params), Object.fromEntries([...query, ...leftOver]), bodyValue);
}

const acceptsNull = (schema: z.ZodType | null) => schema?.safeParse(null).success === true;
