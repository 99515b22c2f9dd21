import type { ApiKeyRow, UserRow } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { type Actor, emit } from '../../events/emit.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { rolesOf } from '../access/memberships.ts';

const SENTENCES = {
  user_added: 'was added',
  user_updated: 'was changed',
  user_disabled: 'was disabled',
  user_enabled: 'was enabled',
  user_removed: 'was removed',
};

/** Who is told to have done it: the caller, or, before there is one, the user himself. */
interface Cause {
  db: Db;
  actor: Actor;
}

export const causedBy = ({ db, principal }: Ctx): Cause => ({ db, actor: actorOf(principal) });

/** Reports a change of a user by the caller. `role_names`: when they are no longer to be found in the database. */
export async function emitUserEvent(
  ctx: Ctx,
  event: keyof typeof SENTENCES,
  change: { user: UserRow; role_names?: string[]; changed_fields?: string[]; before?: object; after?: object },
): Promise<void> {
  await emitUserEventAs(causedBy(ctx), event, change);
}

export async function emitUserEventAs(
  { db, actor }: Cause,
  event: keyof typeof SENTENCES,
  change: { user: UserRow; role_names?: string[]; changed_fields?: string[]; before?: object; after?: object },
): Promise<void> {
  const { user, role_names, ...facts } = change;
  await emit(db, {
    account_id: user.account_id,
    event,
    actor,
    resource: { type: 'user', id: user.id, name: user.full_name },
    summary: `${user.full_name} ${SENTENCES[event]}`,
    user_id: user.id,
    payload: {
      user_id: user.id,
      email: user.email,
      full_name: user.full_name,
      role_names: role_names ?? (await rolesOf({ db }, user.id)).map((role) => role.name),
      ...facts,
    },
  });
}

const DAY_MS = 86_400_000;

/** Whole days, begun ones too. */
const daysLeft = ({ expires_at }: Pick<ApiKeyRow, 'expires_at'>) =>
  Math.max(0, Math.ceil((Date.parse(expires_at) - Date.now()) / DAY_MS));

/** Reports that a key came, was replaced or went. */
export async function emitKeyEvent(
  { db, actor }: Cause,
  event: 'api_key_created' | 'api_key_rotated' | 'api_key_revoked',
  change: { user: UserRow; key: Pick<ApiKeyRow, 'id' | 'prefix' | 'expires_at'>; facts?: object },
): Promise<void> {
  const { user, key, facts } = change;
  const verb = {
    api_key_created: 'was created',
    api_key_rotated: 'replaces the previous one',
    api_key_revoked: 'was revoked',
  };
  await emit(db, {
    account_id: user.account_id,
    event,
    actor,
    resource: { type: 'api_key', id: key.id, name: key.prefix },
    summary: `An API key of ${user.full_name} ${verb[event]}`,
    user_id: user.id,
    payload: { user_id: user.id, email: user.email, prefix: key.prefix, days_remaining: daysLeft(key), ...facts },
  });
}
