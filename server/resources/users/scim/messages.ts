import { z } from 'zod';
import { badRequest } from '../../../platform/errors.ts';

export const SCHEMAS = {
  user: 'urn:ietf:params:scim:schemas:core:2.0:User',
  group: 'urn:ietf:params:scim:schemas:core:2.0:Group',
  list: 'urn:ietf:params:scim:api:messages:2.0:ListResponse',
  error: 'urn:ietf:params:scim:api:messages:2.0:Error',
  config: 'urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig',
} as const;

const MAX_PAGE = 200;
const MAX_MEMBERS = 10_000;

/** Some providers send booleans as text. */
export const Flag = z.union([
  z.boolean(),
  z
    .string()
    .toLowerCase()
    .refine((text) => text === 'true' || text === 'false', 'must be true or false')
    .transform((text) => text === 'true'),
]);

export const Name = z.looseObject({
  formatted: z.string().optional(),
  givenName: z.string().optional(),
  familyName: z.string().optional(),
});
export type Name = z.infer<typeof Name>;

/** What is used of a user. Providers send more. */
export const ScimUser = z.looseObject({
  userName: z.string(),
  active: Flag.optional(),
  displayName: z.string().nullish(),
  name: Name.nullish(),
});
export type ScimUser = z.infer<typeof ScimUser>;

export const Members = z.array(z.looseObject({ value: z.string() })).max(MAX_MEMBERS);
export const ScimGroup = z.looseObject({ displayName: z.string(), members: Members.nullish() });
export type ScimGroup = z.infer<typeof ScimGroup>;

const Operation = z.looseObject({
  op: z
    .string()
    .toLowerCase()
    .pipe(z.enum(['add', 'remove', 'replace'])),
  path: z.string().max(1000).nullish(),
  value: z.unknown().optional(),
});
export type Operation = z.infer<typeof Operation>;
export const Patch = z.looseObject({ Operations: z.array(Operation).min(1).max(1000) });

/** @throws ApiError 400 `invalid_scim_value` */
export function parsed<Output>(schema: z.ZodType<Output>, value: unknown): Output {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw invalidValue(`${issue?.path.join('.') || 'The body'}: ${issue?.message}`);
}

export const invalidValue = (message: string) => badRequest('invalid_scim_value', message);

/** `attribute eq "text"`, of the attributes that can be searched. Null: no filter. @throws ApiError 400 */
export function equalityIn(filter: string | null, attributes: readonly string[]): [string, string] | null {
  if (filter === null || filter === '') return null;
  const [, name = '', text = ''] = /^\s*([\w.:]+)\s+eq\s+("(?:[^"\\]|\\.)*")\s*$/i.exec(filter) ?? [];
  const attribute = attributes.find((one) => one.toLowerCase() === name.toLowerCase());
  const value = unquoted(text);
  if (attribute && value !== null) return [attribute, value];
  throw badRequest('invalid_scim_filter', `The filter must be ${attributes.join(' or ')}, eq and a text in quotes`);
}

/** Null: control characters and unknown escapes have no place in a text of JSON, nor has NUL in the database. */
function unquoted(text: string): string | null {
  try {
    const value = JSON.parse(text) as string;
    return value.includes('\0') ? null : value;
  } catch {
    return null;
  }
}

/** A page of a list, by the parameters `startIndex` (from 1) and `count`. */
export function pageOf<Resource>(all: readonly Resource[], query: URLSearchParams) {
  const whole = (name: string, fallback: number) => {
    const value = Number.parseInt(query.get(name) ?? '', 10);
    return Number.isNaN(value) ? fallback : value;
  };
  const startIndex = Math.max(1, whole('startIndex', 1));
  const count = Math.min(MAX_PAGE, Math.max(0, whole('count', MAX_PAGE)));
  const Resources = all.slice(startIndex - 1, startIndex - 1 + count);
  return {
    schemas: [SCHEMAS.list],
    totalResults: all.length,
    startIndex,
    itemsPerPage: Resources.length,
    Resources,
  };
}
