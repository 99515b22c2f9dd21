import { and, eq, isNull } from 'drizzle-orm';
import { accountConnectors } from '../../../db/schema/index.ts';
import { chatChannels } from '../../connector-runtime/chat-channels.ts';
import { notFound } from '../../platform/errors.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';
import type { ChatChannelSchema } from './cases-schema.ts';

/**
 * The channels of a chat connector, by name.
 * @throws ApiError 404; 400 `not_a_chat_connector`, `account_connector_not_ready`, `upstream_error`.
 */
export async function listChatChannels(
  ctx: Ctx,
  { account_connector_id }: { account_connector_id: string },
): Promise<ChatChannelSchema[]> {
  const [row] = isId(account_connector_id)
    ? await ctx.db
        .select()
        .from(accountConnectors)
        .where(
          and(
            eq(accountConnectors.id, account_connector_id),
            eq(accountConnectors.account_id, ctx.principal.account_id),
            isNull(accountConnectors.deleted_at),
          ),
        )
    : [];
  if (!row) throw notFound('Account connector');
  return chatChannels(ctx.deps, row, actorOf(ctx.principal));
}
