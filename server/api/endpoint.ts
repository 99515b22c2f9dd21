import { z } from 'zod';
import { type Declared, inputParser, refuseSharedKeys } from './request-parser.ts';
import { procedure } from './procedure.ts';
import type { BodyType, Endpoint, ErrorStatus, Method } from './endpoint-meta.ts';

// oxlint-disable-next-line typescript/no-generated-empty-object-type -- a shape without keys is meant
type NoKeys = Record<never, never>;
type Nothing = z.ZodObject<NoKeys>;
/** An object without keys infers as one that has every key. */
type Known<T> = string extends keyof T ? unknown : T;

interface RestOptions<
  Path extends z.ZodRawShape,
  Query extends z.ZodObject,
  Body extends z.ZodType,
  BodyKey,
  QueryKey,
> {
  summary?: string;
  description?: string;
  /** Name in generated clients: verb and noun, such as `list_connections`. */
  operation_id?: string;
  /** Status of a success. Default: 200. 204 has no body. */
  status?: 200 | 201 | 204;
  errors?: readonly ErrorStatus[];
  /** Path parameters with a type other than an opaque string. */
  path?: Path;
  query?: Query;
  /** The input key that holds the whole query, where the body has keys of the same names. */
  query_key?: QueryKey;
  /** Without `body_key`, an object whose keys are merged with path and query parameters into the procedure's input. */
  body?: Body;
  /** The input key that holds the whole body. A missing body counts as null if the schema accepts null. */
  body_key?: BodyKey;
  addition?: true;
  revisioned?: true;
  public?: true;
  /** Default: JSON. */
  consumes?: BodyType;
  /** Default: 1 MiB. */
  max_body_bytes?: number;
  produces?: Record<string, string>;
}

type NamesIn<P extends string> = P extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;
type Together<T> = { [Key in keyof T]: T[Key] };
type OpaqueIds<P extends string, Path> = { [Name in Exclude<NamesIn<P>, keyof Path>]: string };
type QueryIn<Query extends z.ZodObject, Key> = [Key] extends [string]
  ? { [K in Key]?: z.input<Query> }
  : Known<z.input<Query>>;
type QueryOut<Query extends z.ZodObject, Key> = [Key] extends [string]
  ? { [K in Key]: z.output<Query> }
  : Known<z.output<Query>>;
type BodyIn<Body extends z.ZodType, Key> = [Key] extends [string]
  ? null extends z.input<Body>
    ? { [K in Key]?: z.input<Body> }
    : { [K in Key]: z.input<Body> }
  : Known<z.input<Body>>;
type BodyOut<Body extends z.ZodType, Key> = [Key] extends [string]
  ? { [K in Key]: z.output<Body> }
  : Known<z.output<Body>>;

/** Typed clients may omit an input without required keys. */
type Omissible<Input> = NoKeys extends Input ? Input | undefined : Input;

/**
 * Declares the endpoint of a procedure: `write('connections.create').concat(rest('POST', …))`. Path, query and body are
 * declared once; the route, the OpenAPI document and the procedure's flat input follow from them.
 */
export function rest<
  const P extends `/${string}`,
  Path extends z.ZodRawShape = NoKeys,
  Query extends z.ZodObject = Nothing,
  Body extends z.ZodType = Nothing,
  BodyKey extends string | undefined = undefined,
  QueryKey extends string | undefined = undefined,
>(method: Method, path: P, options: RestOptions<Path, Query, Body, BodyKey, QueryKey> = {}) {
  const { summary, description, status = 200, errors = [], consumes = 'application/json', produces = null } = options;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  const shape = Object.fromEntries(names.map((name) => [name, options.path?.[name] ?? z.string()]));
  const declared: Declared = {
    params: z.strictObject(shape),
    query: z.strictObject(options.query?.shape ?? {}),
    query_key: options.query_key ?? null,
    body: options.body ?? null,
    body_key: options.body_key ?? null,
  };
  refuseSharedKeys(`${method} ${path}`, declared);
  const operation_id = options.operation_id ?? null;
  const endpoint: Endpoint = {
    method,
    path,
    operation_id,
    status,
    errors,
    consumes,
    produces,
    addition: options.addition ?? false,
    revisioned: options.revisioned ?? false,
    public: options.public ?? false,
    max_body_bytes: options.max_body_bytes ?? null,
    ...declared,
  };
  type Ids = OpaqueIds<P, Path>;
  type Input = Together<Ids & Known<z.input<z.ZodObject<Path>>> & QueryIn<Query, QueryKey> & BodyIn<Body, BodyKey>>;
  type Output = Together<Ids & Known<z.output<z.ZodObject<Path>>> & QueryOut<Query, QueryKey> & BodyOut<Body, BodyKey>>;
  return procedure
    .meta({ openapi: { method, path, summary, description, protect: true }, endpoint })
    .input(inputParser<Omissible<Input>, Output>(declared));
}
