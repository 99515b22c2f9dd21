import { authenticate } from '../../api/authentication.ts';
import { recordAndAttribute } from '../../api/audit/record.ts';
import { recordRefusal } from '../../api/audit/refusals.ts';
import { describeError } from '../../api/error-response.ts';
import { type Ctx, requirePermission } from '../../api/procedure.ts';
import type { Deps } from '../../deps.ts';
import {
  clearGroup,
  createGroup,
  getGroup,
  listGroups,
  patchGroup,
  replaceGroup,
} from '../../resources/users/scim/groups.ts';
import { parsed, Patch, SCHEMAS, ScimGroup, ScimUser } from '../../resources/users/scim/messages.ts';
import {
  createScimUser,
  getScimUser,
  listScimUsers,
  patchScimUser,
  replaceScimUser,
} from '../../resources/users/scim/users.ts';
import { deleteUser } from '../../resources/users/service.ts';
import { readJson } from '../body.ts';
import type { Handler } from '../edge.ts';
import { unauthenticatedCall } from '../errors.ts';
import type { PathRoutes } from '../rest.ts';

interface Call {
  id: string;
  query: URLSearchParams;
  body: unknown;
}
type Work = (ctx: Ctx, call: Call) => Promise<object | void>;

const CONFIG = {
  schemas: [SCHEMAS.config],
  patch: { supported: true },
  bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
  filter: { supported: true, maxResults: 200 },
  changePassword: { supported: false },
  sort: { supported: false },
  etag: { supported: false },
  authenticationSchemes: [
    { type: 'oauthbearertoken', name: 'Bearer token', description: 'An API key of a service account', primary: true },
  ],
};

/** Users and groups as providers keep them in step: SCIM 2.0 (RFC 7643 and 7644). */
export function scimRoutes(deps: Deps): PathRoutes[] {
  const routes = (path: string, resource: string, handlers: Record<string, Work>): PathRoutes => ({
    pattern: `/scim/v2/${path.replace('{id}', ':p1')}`,
    template: `/scim/v2/${path}`,
    handlers: new Map(
      Object.entries(handlers).map(([method, work]) => [
        method,
        handlerOf(deps, { route: `/scim/v2/${path}`, resource, work }),
      ]),
    ),
  });
  const patched = (body: unknown) => parsed(Patch, body).Operations;
  return [
    routes('ServiceProviderConfig', 'user', { GET: async () => CONFIG }),
    routes('Users', 'user', {
      GET: (ctx, { query }) => listScimUsers(ctx, query),
      POST: (ctx, { body }) => createScimUser(ctx, parsed(ScimUser, body)),
    }),
    routes('Users/{id}', 'user', {
      GET: (ctx, { id }) => getScimUser(ctx, id),
      PUT: (ctx, { id, body }) => replaceScimUser(ctx, id, parsed(ScimUser, body)),
      PATCH: (ctx, { id, body }) => patchScimUser(ctx, id, patched(body)),
      DELETE: async (ctx, { id }) => {
        await getScimUser(ctx, id);
        await deleteUser(ctx, { user_id: id });
      },
    }),
    routes('Groups', 'group', {
      GET: (ctx, { query }) => listGroups(ctx, query),
      POST: (ctx, { body }) => createGroup(ctx, parsed(ScimGroup, body)),
    }),
    routes('Groups/{id}', 'group', {
      GET: (ctx, { id }) => getGroup(ctx, id),
      PUT: (ctx, { id, body }) => replaceGroup(ctx, id, parsed(ScimGroup, body)),
      PATCH: (ctx, { id, body }) => patchGroup(ctx, id, patched(body)),
      DELETE: (ctx, { id }) => clearGroup(ctx, id),
    }),
  ];
}

/** One call: key, permission, body, then one transaction with the changes and their entries in the audit log. */
function handlerOf(deps: Deps, { route, resource, work }: { route: string; resource: string; work: Work }): Handler {
  return async (exchange) => {
    const { request, request_id, params, headers } = exchange;
    const call = { ...unauthenticatedCall(exchange, route) };
    try {
      const principal = await authenticate(deps, {
        authorization: request.headers.get('authorization'),
        session: null,
      });
      Object.assign(call, { principal });
      requirePermission({ principal }, 'users.manage');
      const [id = ''] = params;
      const isRead = request.method === 'GET' || request.method === 'HEAD';
      const body = isRead || request.method === 'DELETE' ? undefined : await readJson(request);
      const setHeader = (name: string, value: string) => headers.set(name, value);
      const ctx = { deps, db: deps.db, principal, request_id, setHeader };
      const given = { id, query: new URL(request.url).searchParams, body };
      const answer = isRead
        ? await work(ctx, given)
        : await deps.db.transaction(async (db) => {
            await recordAndAttribute(db, { ...call, principal }, { resource_type: resource, resource_id: id || null });
            return work({ ...ctx, db }, given);
          });
      if (!answer) return new Response(null, { status: 204 });
      return scimResponse(answer, { status: request.method === 'POST' ? 201 : 200 });
    } catch (error) {
      await recordRefusal(deps, error, () => call);
      return errorResponse(deps, error, request_id);
    }
  };
}

const TYPES: Record<string, string> = {
  email_taken: 'uniqueness',
  immutable_field: 'mutability',
  invalid_scim_filter: 'invalidFilter',
};

function errorResponse(deps: Deps, error: unknown, request_id: string): Response {
  const { status: described, body, headers, cause } = describeError(error, request_id);
  if (cause !== undefined) deps.log.error({ err: cause, request_id }, 'request failed');
  const code = typeof body.code === 'string' ? body.code : '';
  const status = code === 'email_taken' ? 409 : described === 422 ? 400 : described;
  const detail = typeof body.detail === 'string' ? body.detail : 'The body is not valid JSON';
  const scimType = TYPES[code] ?? (status === 400 ? 'invalidValue' : undefined);
  const message = { schemas: [SCHEMAS.error], status: String(status), ...(scimType && { scimType }), detail };
  return scimResponse(message, { status, headers });
}

const scimResponse = (body: object, { status, headers }: { status: number; headers?: Record<string, string> }) =>
  new Response(JSON.stringify(body), {
    status,
    headers: { ...headers, 'content-type': 'application/scim+json' },
  });
