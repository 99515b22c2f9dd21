import type { ApiKeyRow, UserRow } from '../../../db/schema/index.ts';
import type { Cause } from '../../events/emit.ts';
import {
  emitKeyEvent as emitApiKeyEvent,
  emitUserEvent as emitEvent,
  type UserEventKind,
} from '../../events/user-events.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { rolesOf } from '../access/memberships.ts';

export const causedBy = ({ db, principal }: Ctx): Cause => ({ db, actor: actorOf(principal) });

type UserChange = { user: UserRow; role_names?: string[]; changed_fields?: string[]; before?: object; after?: object };

/** Emits an event about a change of a user by the caller. `role_names` is required when the user's roles are already removed. */
export const emitUserEvent = (ctx: Ctx, event: UserEventKind, change: UserChange): Promise<void> =>
  emitUserEventAs(causedBy(ctx), event, change);

export async function emitUserEventAs(cause: Cause, event: UserEventKind, change: UserChange): Promise<void> {
  const role_names = change.role_names ?? (await rolesOf(cause, change.user.id)).map((role) => role.name);
  await emitEvent(cause, event, { ...change, role_names });
}

const DAY_MS = 86_400_000;

/** Rounded up to whole days. */
const daysLeft = ({ expires_at }: Pick<ApiKeyRow, 'expires_at'>) =>
  Math.max(0, Math.ceil((Date.parse(expires_at) - Date.now()) / DAY_MS));

/** Emits an event about an API key that a user has created, rotated or revoked. */
export const emitKeyEvent = (
  cause: Cause,
  event: 'api_key_created' | 'api_key_rotated' | 'api_key_revoked',
  change: { user: UserRow; key: Pick<ApiKeyRow, 'id' | 'prefix' | 'expires_at'>; facts?: object },
): Promise<void> => emitApiKeyEvent(cause, event, { ...change, days_remaining: daysLeft(change.key) });
