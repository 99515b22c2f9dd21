import type { TriggerRow } from '../../../db/schema/index.ts';
import type { Secrets } from '../../platform/secrets.ts';
import { SECRET_MASK } from './action-schema.ts';

type Action = TriggerRow['actions'][number];
type Identity = Pick<TriggerRow, 'account_id' | 'id'>;
/** Secrets by the index of their action. */
type ActionSecrets = Record<string, string>;

const contextOf = (trigger: Identity) => `trigger:${trigger.account_id}:${trigger.id}`;

/** The decrypted secrets of a trigger's actions, for delivery. */
export function openActionSecrets(secrets: Secrets, trigger: Identity & Pick<TriggerRow, 'secrets'>): ActionSecrets {
  return trigger.secrets === null
    ? {}
    : (JSON.parse(secrets.open(trigger.secrets, contextOf(trigger))) as ActionSecrets);
}

/** The actions with their secrets masked, as stored and shown, and the encrypted secrets. */
export function sealActions(
  secrets: Secrets,
  input: { trigger: Identity; actions: readonly Action[]; before: Pick<TriggerRow, 'actions' | 'secrets'> | null },
): Pick<TriggerRow, 'actions' | 'secrets'> {
  const { trigger, before } = input;
  const present = before ? openActionSecrets(secrets, { ...trigger, secrets: before.secrets }) : {};
  const kept: ActionSecrets = {};
  const actions = input.actions.map((action, index) => {
    if (typeof action.secret !== 'string') return action;
    const secret =
      action.secret === SECRET_MASK ? present[unchanged(before?.actions ?? [], action, index)] : action.secret;
    if (secret !== undefined) kept[index] = secret;
    return { ...action, secret: secret === undefined ? null : SECRET_MASK };
  });
  const any = Object.keys(kept).length > 0;
  return { actions, secrets: any ? secrets.seal(JSON.stringify(kept), contextOf(trigger)) : null };
}

/** Index of the stored action that a mask refers to: actions may have been reordered. */
function unchanged(before: readonly Action[], action: Action, index: number): number {
  if (before[index]?.url === action.url) return index;
  const moved = before.findIndex((one) => one.type === action.type && one.url === action.url);
  return moved < 0 ? index : moved;
}
