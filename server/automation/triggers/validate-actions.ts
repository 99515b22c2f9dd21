import { and, eq, inArray, isNull, ne, sql } from 'drizzle-orm';
import { accountConnectors, connections, users } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import type { ActionOf, TriggerAction } from './action-schema.ts';
import { ApiError, badRequest } from '../../platform/errors.ts';
import { checkUrl } from '../../platform/net/guarded-fetch.ts';
import { EgressError } from '../../platform/net/egress-rules.ts';
import type { Permission } from '../../api/permissions.ts';
import { refuseReferences } from '../../api/refuse-references.ts';
import { chatChannels } from '../../connector-runtime/chat-channels.ts';

interface Caller {
  db: Db;
  deps: Deps;
  principal: { account_id: string; user_id: string; permissions: ReadonlySet<Permission> };
}

/** Permissions that users need themselves before a trigger may act for them. */
const NEEDED: Partial<Record<TriggerAction['type'], Permission>> = {
  pause_connection: 'connections.update',
  run_connection: 'connections.run',
  rerun_run: 'connections.run',
};

/**
 * Checks that everything the actions refer to exists and can be used. Channels are listed live.
 * @throws ApiError 400 `invalid_reference`, `unknown_channel`, `account_connector_not_ready`, `upstream_error`,
 * `address_not_allowed`, each with the `field`; 403 `permission_denied`.
 */
export async function validateActions(ctx: Caller, actions: readonly TriggerAction[]): Promise<void> {
  requireActionPermissions(ctx, actions);
  for (const [index, action] of actions.entries()) await validateAction(ctx, action, `actions.${index}`);
}

/**
 * A trigger acts on its own, so each change of what makes it fire needs the permissions of what it does.
 * @throws ApiError 403 `permission_denied`
 */
export function requireActionPermissions(
  { principal }: Pick<Caller, 'principal'>,
  actions: readonly { type?: unknown }[],
): void {
  for (const { type } of actions) {
    const needed = NEEDED[type as TriggerAction['type']];
    if (!needed || principal.permissions.has(needed)) continue;
    throw new ApiError(403, 'permission_denied', `Missing permission: ${needed}`, { required_permission: needed });
  }
}

async function validateAction(ctx: Caller, action: TriggerAction, field: string): Promise<void> {
  if (action.type === 'send_chat_message') await validateChat(ctx, action, field);
  else if (action.type === 'send_email') await validateRecipients(ctx, action, field);
  else if (action.type === 'call_webhook') validateWebhook(ctx, action, field);
  else if (action.type === 'run_connection') await validateConnection(ctx, action, field);
}

async function validateChat(ctx: Caller, action: ActionOf<'send_chat_message'>, field: string): Promise<void> {
  const [row] = await ctx.db
    .select()
    .from(accountConnectors)
    .where(
      and(
        eq(accountConnectors.id, action.account_connector_id),
        eq(accountConnectors.account_id, ctx.principal.account_id),
        isNull(accountConnectors.deleted_at),
      ),
    );
  if (!row)
    throw unknown(`${field}.account_connector_id`, 'account_connector_id is not a chat connector of this account');
  const channels = await chatChannels(ctx.deps, row, { type: 'user', id: ctx.principal.user_id }).catch(
    (error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      const code = error.code === 'not_a_chat_connector' ? 'invalid_reference' : error.code;
      throw badRequest(code, error.message, { ...error.context, field: `${field}.account_connector_id` });
    },
  );
  const channel = channels.find(({ id }) => id === action.channel_id);
  if (channel && !channel.is_archived) return;
  const message = channel ? `Channel ${channel.name} is archived` : `Unknown channel ${action.channel_id}`;
  throw badRequest('unknown_channel', message, { field: `${field}.channel_id` });
}

async function validateRecipients(ctx: Caller, action: ActionOf<'send_email'>, field: string): Promise<void> {
  const found = await ctx.db
    .select({ email: sql<string>`lower(${users.email})` })
    .from(users)
    .where(
      and(
        eq(users.account_id, ctx.principal.account_id),
        isNull(users.deleted_at),
        ne(users.status, 'disabled'),
        inArray(sql`lower(${users.email})`, action.recipients),
      ),
    );
  const known = new Set(found.map(({ email }) => email));
  const recipients = action.recipients.filter((email) => !known.has(email));
  if (recipients.length === 0) return;
  throw badRequest('invalid_reference', 'Recipients must be users of the account', {
    field: `${field}.recipients`,
    recipients,
  });
}

function validateWebhook(ctx: Caller, action: ActionOf<'call_webhook'>, field: string): void {
  for (const name of ['headers', 'secret'] as const) refuseReferences(ctx, action[name], { field: `${field}.${name}` });
  try {
    checkUrl(new URL(action.url), ctx.deps.egress);
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    throw badRequest('address_not_allowed', error.message, { field: `${field}.url`, reason: error.code });
  }
}

async function validateConnection(ctx: Caller, action: ActionOf<'run_connection'>, field: string): Promise<void> {
  if (action.connection_id === null) return;
  const [row] = await ctx.db
    .select({ id: connections.id })
    .from(connections)
    .where(
      and(
        eq(connections.id, action.connection_id),
        eq(connections.account_id, ctx.principal.account_id),
        isNull(connections.deleted_at),
      ),
    );
  if (!row) throw unknown(`${field}.connection_id`, 'connection_id is not a connection of this account');
}

const unknown = (field: string, message: string) => badRequest('invalid_reference', message, { field });
