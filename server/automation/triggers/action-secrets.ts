import type { TriggerRow } from '../../../db/schema/index.ts';
import { badRequest } from '../../platform/errors.ts';
import { maskAddress } from '../../platform/keyed-address.ts';
import { MASK } from '../../platform/mask.ts';
import type { Secrets } from '../../platform/secrets.ts';
import type { ActionOf } from './action-schema.ts';

type Action = TriggerRow['actions'][number];
type Webhook = ActionOf<'call_webhook'>;
type Identity = Pick<TriggerRow, 'account_id' | 'id'>;
type Stored = Pick<TriggerRow, 'actions' | 'secrets'>;
/** The encrypted part of each webhook, by the index of the action. `url` only if it contains credentials. */
type ActionSecrets = Record<string, Partial<Pick<Webhook, 'url' | 'headers'> & { secret: string }>>;

/** Encryption context of a trigger's secrets. */
export const triggerContext = (trigger: Identity) => `trigger:${trigger.account_id}:${trigger.id}`;

const isWebhook = (action: Action | undefined): action is Action & Webhook => action?.type === 'call_webhook';

/** The actions with their secrets, for delivery. They must not leave the process. */
export function openActions(secrets: Secrets, trigger: Identity & Stored): Action[] {
  const sealed =
    trigger.secrets === null
      ? {}
      : (JSON.parse(secrets.open(trigger.secrets, triggerContext(trigger))) as Record<
          string,
          ActionSecrets[string] | string
        >);
  return trigger.actions.map((action, index) => {
    const own = sealed[index];
    // Rows of earlier versions hold the signing secret alone.
    return { ...action, ...(typeof own === 'string' ? { secret: own } : own) };
  });
}

/**
 * The actions with their secrets masked, as stored and shown, and the encrypted secrets. A mask stands for the stored
 * value of the webhook with the same URL: a secret does not follow its webhook to another address.
 * @throws ApiError 400 `secrets_required` with `field`
 */
export function sealActions(
  secrets: Secrets,
  input: { trigger: Identity; actions: readonly Action[]; before: Stored | null },
): Stored {
  const { trigger, before } = input;
  const present = before ? openActions(secrets, { ...trigger, ...before }) : [];
  const sealed: ActionSecrets = {};
  const actions = input.actions.map((action, index) => {
    if (!isWebhook(action)) return action;
    const whole = unmasked(action, { field: `actions.${index}`, stored: storedWebhook(present, action, index) });
    const url = maskAddress(whole.url);
    const own = {
      ...(url !== whole.url && { url: whole.url }),
      ...(Object.keys(whole.headers).length > 0 && { headers: whole.headers }),
      ...(whole.secret !== null && { secret: whole.secret }),
    };
    if (Object.keys(own).length > 0) sealed[index] = own;
    const headers = Object.fromEntries(Object.keys(whole.headers).map((name) => [name, MASK]));
    return { ...whole, url, headers, secret: whole.secret === null ? null : MASK };
  });
  const any = Object.keys(sealed).length > 0;
  const after = { actions, secrets: any ? secrets.seal(JSON.stringify(sealed), triggerContext(trigger)) : null };
  // Sealing the same secrets again gives another text.
  const isSame = before && Bun.deepEquals(openActions(secrets, { ...trigger, ...after }), present);
  return isSame ? { actions: before.actions, secrets: before.secrets } : after;
}

/** The stored webhook that a mask refers to: actions may have been reordered. */
function storedWebhook(present: readonly Action[], action: Webhook, index: number): Webhook | undefined {
  const isSame = (one: Action | undefined) => isWebhook(one) && [one.url, maskAddress(one.url)].includes(action.url);
  const found = isSame(present[index]) ? present[index] : present.find(isSame);
  return isWebhook(found) ? found : undefined;
}

function unmasked(action: Webhook, { field, stored }: { field: string; stored: Webhook | undefined }): Webhook {
  const value = (given: string, known: string | null | undefined, place: string): string => {
    if (!given.includes(MASK)) return given;
    if (typeof known === 'string' && (given === MASK || given === maskAddress(known))) return known;
    throw badRequest('secrets_required', `${place} is masked, and no value is stored for this URL. Enter it again`, {
      field: place,
    });
  };
  const { url, headers, secret } = action;
  return {
    ...action,
    url: value(url, stored?.url, `${field}.url`),
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, text]) => [
        name,
        value(text, stored?.headers?.[name], `${field}.headers.${name}`),
      ]),
    ),
    secret: secret === null ? null : value(secret, stored?.secret, `${field}.secret`),
  };
}
