import type { OpenApiMeta } from 'trpc-to-openapi';
import { z } from 'zod';
import type { Declared } from './request-parser.ts';
import type { Permission } from './permissions.ts';

/** The part of a procedure that http/ reads: the library's meta and what the library lacks. */
export type EndpointMeta = OpenApiMeta<{
  /** The required permission, set by `write` and `act`. */
  needed?: Permission | readonly Permission[] | null;
  endpoint?: Endpoint;
  /** Of a procedure without an endpoint. */
  rpc?: ProcedureDocs;
  /** Whether mutations leave an entry in the audit log, set by `write`, `act` and `publicAct`. */
  audited?: true;
}>;

/** What the API reference says about a procedure that tRPC alone serves. */
export interface ProcedureDocs {
  summary: string;
  description: string;
  input: z.ZodObject;
  /** What a subscription yields, and a mutation or query without an output parser returns. */
  yields?: z.ZodType;
}

/** A declared endpoint, from which its route, its input and its entry in the OpenAPI document are derived. */
export interface Endpoint extends Declared {
  method: Method;
  path: `/${string}`;
  operation_id: string | null;
  status: 200 | 201 | 204;
  /** Statuses beyond those that follow from the declaration (401, 403, 404 with path parameters, 422, 500). */
  errors: readonly ErrorStatus[];
  consumes: BodyType;
  /** Whether the operation is one beside the original interface. The document marks it. */
  addition: boolean;
  /** Whether the response has the revision of the object as its ETag. A POST then heeds If-Match. */
  revisioned: boolean;
  /** Whether callers need no key. */
  public: boolean;
  /** How large a request may be; null: 1 MiB. */
  max_body_bytes: number | null;
  /** Response bodies other than JSON, by content type with a description. The procedure then returns a Response. */
  produces: Record<string, string> | null;
}

export type BodyType = 'application/json' | 'multipart/form-data';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export type ErrorStatus = 400 | 402 | 403 | 404 | 412;
