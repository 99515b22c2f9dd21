import { initTRPC } from '@trpc/server';
import { TRPC_ERROR_CODES_BY_KEY, type TRPC_ERROR_CODE_KEY } from '@trpc/server/rpc';
import type { Db } from '../../db/types.ts';
import { type Credentials, type Principal, authenticate } from './authentication.ts';
import type { Deps } from '../deps.ts';
import { describeError } from './error-response.ts';
import { attributing, type AuditedCall, type Caller, recordAndAttribute, recordCall } from './audit/record.ts';
import { calledResource } from './audit/called-resource.ts';
import { recordRefusal } from './audit/refusals.ts';
import { ApiError } from '../platform/errors.ts';
import type { Permission } from './permissions.ts';
import type { EndpointMeta } from './endpoint-meta.ts';

export { actorOf, type Principal } from './authentication.ts';

/** Context of a call before authentication. REST and tRPC provide it. */
export interface CallContext extends Credentials {
  deps: Deps;
  request_id: string;
  /** The client's address. Empty for calls within the process. Asked for: most calls do not need it. */
  address(): string;
  user_agent: string | null;
  /** The revisions of the header If-Match; null: any, or no header. */
  if_match?: readonly string[] | null;
  setHeader(name: string, value: string): void;
  /** Called with the result of a `write`, inside its transaction. */
  changed?(db: Db, result: unknown): Promise<void>;
}

/** Context of a service. `db` is the transaction of the whole call in a `write`. */
export interface Ctx {
  db: Db;
  deps: Deps;
  principal: Principal;
  request_id: string;
  if_match?: readonly string[] | null;
  /** Sets a response header, such as `X-Total-Count`. */
  setHeader(name: string, value: string): void;
}

/** Context of an `act`. */
export interface ActCtx extends Ctx {
  /**
   * The transaction of the change that the call is about. It also stores the call's entry of the audit log, which
   * otherwise takes a commit of its own.
   */
  change<Result>(work: (db: Db) => Promise<Result>): Promise<Result>;
}

/** tRPC error names by HTTP status. */
const NAMES: Record<number, TRPC_ERROR_CODE_KEY> = {
  400: 'BAD_REQUEST',
  401: 'UNAUTHORIZED',
  402: 'PAYMENT_REQUIRED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_SUPPORTED',
  412: 'PRECONDITION_FAILED',
  413: 'PAYLOAD_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  422: 'UNPROCESSABLE_CONTENT',
  429: 'TOO_MANY_REQUESTS',
  499: 'CLIENT_CLOSED_REQUEST',
};

const t = initTRPC
  .context<CallContext>()
  .meta<EndpointMeta>()
  .create({
    isDev: false,
    // Pings must come more often than the server's idle timeout (app.ts). A client without pings reconnects.
    sse: { ping: { enabled: true, intervalMs: 5_000 }, client: { reconnectAfterInactivityMs: 15_000 } },
    errorFormatter: ({ error, shape, ctx }) => {
      const request_id = ctx?.request_id ?? '';
      const { status, body } = describeError(error, request_id);
      const message = typeof body.detail === 'string' ? body.detail : 'The request does not match the documented shape';
      const code = TRPC_ERROR_CODES_BY_KEY[NAMES[status] ?? 'INTERNAL_SERVER_ERROR'];
      return { ...shape, code, message, data: { ...body, request_id, httpStatus: status, path: shape.data.path } };
    },
  });

export const router = t.router;
/** The bare builder, for endpoint.ts. */
export const procedure = t.procedure;

/** The procedures of one batch share the context, and so one lookup of the key. */
const principals = new WeakMap<CallContext, Promise<Principal>>();

const callerOf = ({ request_id, address, user_agent }: CallContext): Caller => ({
  request_id,
  address: address(),
  user_agent,
});

/** Records refusals, whichever part of the call refuses, and downloads. */
const recorded = t.procedure.use(async ({ ctx, path, meta, getRawInput, next }) => {
  const result = await next();
  const isDownload = result.ok && Boolean(meta?.endpoint?.produces);
  if (result.ok && !isDownload) return result;
  const principal = (await principals.get(ctx)?.catch(() => null)) ?? null;
  const call = () => ({ caller: callerOf(ctx), principal, action: path });
  if (!result.ok) await recordRefusal(ctx.deps, result.error, call);
  else await recordCall(ctx.deps.db, call(), { kind: 'download', ...calledResource(meta, await getRawInput()) });
  return result;
});

const authenticated = recorded.use(async ({ ctx, next }) => {
  const looking = principals.get(ctx) ?? authenticate(ctx.deps, ctx);
  principals.set(ctx, looking);
  return next({ ctx: { db: ctx.deps.db, principal: await looking } });
});

/** A read: open to any user of the account, without a transaction. */
export const read = authenticated;

/** One permission, or several of which any suffices. Null: any user. */
export type Needed = Permission | readonly Permission[] | null;

const permitted = (needed: Needed) =>
  authenticated.meta({ needed, audited: true }).use(({ ctx, next }) => {
    if (needed) requirePermission(ctx, needed);
    return next();
  });

/** A change without a key, such as accepting an invitation. It opens its own transactions. */
export const publicAct = recorded.meta({ audited: true }).use(async ({ ctx, path, meta, getRawInput, next }) => {
  const call = (): AuditedCall => ({ caller: callerOf(ctx), principal: null, action: path });
  const result = await next({ ctx: { db: attributing(ctx.deps.db, call) } });
  if (result.ok) await recordCall(ctx.deps.db, call(), { kind: 'call', ...calledResource(meta, await getRawInput()) });
  return result;
});

/** A change that uses the network or opens its own transactions on `ctx.db`. */
export const act = (needed: Needed) =>
  permitted(needed).use(async ({ ctx, type, path, meta, getRawInput, next }) => {
    const isChange = type !== 'query';
    const call = (): AuditedCall => ({ caller: callerOf(ctx), principal: ctx.principal, action: path });
    const resource = async () => calledResource(meta, await getRawInput());
    let isRecorded = false;
    const change: ActCtx['change'] = async (work) => {
      const about = await resource();
      const done = await ctx.db.transaction(async (tx) => {
        await recordAndAttribute(tx, call(), about);
        return work(tx);
      });
      isRecorded = true;
      return done;
    };
    const result = await next({ ctx: { db: isChange ? attributing(ctx.db, call) : ctx.db, change } });
    if (result.ok && isChange && !isRecorded) await recordCall(ctx.db, call(), { kind: 'call', ...(await resource()) });
    return result;
  });

/**
 * A change: the whole call is one transaction, `ctx.db`. The body is read before the transaction opens, so that a slow
 * client does not hold a connection.
 */
export const write = (needed: Needed) =>
  permitted(needed).use(async ({ ctx, path, meta, getRawInput, next }) => {
    const resource = calledResource(meta, await getRawInput());
    const call: AuditedCall = { caller: callerOf(ctx), principal: ctx.principal, action: path };
    return ctx.db.transaction(async (tx) => {
      await recordAndAttribute(tx, call, resource);
      const result = await next({ ctx: { db: tx } });
      // next() does not throw: without this line the transaction would commit after an error.
      if (!result.ok) throw result.error;
      await ctx.changed?.(tx, result.data);
      return result;
    });
  });

/**
 * For permissions that depend on the object, in services.
 * @throws ApiError 403 `permission_denied` with `required_permission`.
 */
export function requirePermission(ctx: Pick<Ctx, 'principal'>, needed: Permission | readonly Permission[]): void {
  const alternatives: readonly Permission[] = typeof needed === 'string' ? [needed] : needed;
  if (alternatives.some((permission) => ctx.principal.permissions.has(permission))) return;
  throw new ApiError(403, 'permission_denied', `Missing permission: ${alternatives.join(' or ')}`, {
    required_permission: alternatives.length === 1 ? alternatives[0] : alternatives,
  });
}
