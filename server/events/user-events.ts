import type { ApiKeyRow, UserRow } from '../../db/schema/index.ts';
import { type Cause, emit } from './emit.ts';

export type ReportedUser = Pick<UserRow, 'id' | 'account_id' | 'email' | 'full_name'>;

const SENTENCES = {
  user_added: 'was added',
  user_updated: 'was edited',
  user_disabled: 'was disabled',
  user_enabled: 'was enabled',
  user_removed: 'was removed',
  user_logged_in: 'signed in to the console',
};

export type UserEventKind = keyof typeof SENTENCES;

/** Emits an event about a user, with the variables that rules may use. */
export async function emitUserEvent(
  { db, actor }: Cause,
  event: UserEventKind,
  change: { user: ReportedUser; role_names: string[]; changed_fields?: string[]; before?: object; after?: object },
): Promise<void> {
  const { user, ...facts } = change;
  await emit(db, {
    account_id: user.account_id,
    event,
    actor,
    resource: { type: 'user', id: user.id, name: user.full_name },
    summary: `${user.full_name} ${SENTENCES[event]}`,
    user_id: user.id,
    payload: { user_id: user.id, email: user.email, full_name: user.full_name, ...facts },
  });
}

const KEY_SENTENCES = {
  api_key_created: 'was created',
  api_key_rotated: 'was replaced by a new one',
  api_key_revoked: 'was revoked',
  api_key_expired: 'has expired',
  api_key_expiring: '',
};

/** Emits an event about an API key. `days_remaining` counts started days. */
export async function emitKeyEvent(
  { db, actor }: Cause,
  event: keyof typeof KEY_SENTENCES,
  change: { user: ReportedUser; key: Pick<ApiKeyRow, 'id' | 'prefix'>; days_remaining: number; facts?: object },
): Promise<void> {
  const { user, key, days_remaining, facts } = change;
  const expiring = `expires within ${days_remaining} ${days_remaining === 1 ? 'day' : 'days'}`;
  await emit(db, {
    account_id: user.account_id,
    event,
    actor,
    resource: { type: 'api_key', id: key.id, name: key.prefix },
    summary: `An API key of ${user.full_name} ${KEY_SENTENCES[event] || expiring}`,
    user_id: user.id,
    payload: { user_id: user.id, email: user.email, prefix: key.prefix, days_remaining, ...facts },
  });
}
