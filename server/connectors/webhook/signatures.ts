import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { ReceivedRequest } from '../contract/connector.ts';
import { AuthenticationError } from '../contract/errors.ts';
import type { Signature, WebhookConfig } from './settings.ts';

type Signed = Exclude<Signature, 'none'>;
/** The signature by a secret. Null: the secret is no key. */
type Expected = (secret: string) => string | null;

/** Senders name several signatures while they change their secret. More are not looked at. */
const MAX_SIGNATURES = 10;

/** @throws AuthenticationError, whose message contains neither the secret nor the expected signature */
export function verifySignature(config: WebhookConfig, request: ReceivedRequest): void {
  if (config.signature === 'none') return;
  const secrets = [config.secret, config.previous_secret].filter((one) => one !== undefined);
  const { given, expected } = KINDS[config.signature](request, config);
  // Compares each with each, so that the time does not depend on which one matches.
  const matches = given.flatMap((one) => secrets.map((secret) => isSame(one, expected(secret))));
  if (matches.includes(true)) return;
  throw refused('The signature does not match. Compare the signing secret of the source with that of the sender');
}

const KINDS: Record<
  Signed,
  (request: ReceivedRequest, config: WebhookConfig) => { given: string[]; expected: Expected }
> = {
  secret_header: ({ headers }, { header_name }) => ({
    given: [required(headers, header_name)],
    expected: (secret) => secret,
  }),
  github: ({ headers, body }) => ({
    given: [prefixed(required(headers, 'x-hub-signature-256'), 'sha256=')],
    expected: (secret) => hmac(secret, body).toString('hex'),
  }),
  shopify: ({ headers, body }) => ({
    given: [required(headers, 'x-shopify-hmac-sha256')],
    expected: (secret) => hmac(secret, body).toString('base64'),
  }),
  stripe: (request, config) => {
    const parts = required(request.headers, 'stripe-signature').slice(0, 2000).split(',');
    const valuesOf = (name: string) =>
      parts.flatMap((part) => (part.trim().startsWith(`${name}=`) ? [part.trim().slice(name.length + 1)] : []));
    const [time = ''] = valuesOf('t');
    refuseOtherTimes(time, request, config);
    const expected: Expected = (secret) => hmac(secret, `${time}.`, request.body).toString('hex');
    return { given: valuesOf('v1').slice(0, MAX_SIGNATURES), expected };
  },
  standard_webhooks: (request, config) => {
    const { headers, body } = request;
    const [id, time] = [required(headers, 'webhook-id'), required(headers, 'webhook-timestamp')];
    refuseOtherTimes(time, request, config);
    const given = required(headers, 'webhook-signature').slice(0, 5000).split(' ').slice(0, MAX_SIGNATURES);
    const expected: Expected = (secret) => {
      const key = standardKey(secret);
      return key && hmac(key, `${id}.${time}.`, body).toString('base64');
    };
    return { given: given.flatMap((one) => (one.startsWith('v1,') ? [one.slice(3)] : [])), expected };
  },
};

/** The key of a secret of Standard Webhooks, `whsec_` and base64. Null: it has another form. */
export function standardKey(secret: string): Buffer | null {
  const text = secret.startsWith('whsec_') ? secret.slice(6) : secret;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null;
  const key = Buffer.from(text, 'base64');
  return key.length > 0 ? key : null;
}

function hmac(key: string | Buffer, ...parts: (string | Uint8Array)[]): Buffer {
  const hash = createHmac('sha256', key);
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** Hashes have one length, so the time of the comparison reveals neither the content nor the length of the secret. */
const isSame = (given: string, expected: string | null) =>
  expected !== null && timingSafeEqual(digest(given), digest(expected));
const digest = (value: string) => createHash('sha256').update(value).digest();

function required(headers: Headers, name: string): string {
  const value = headers.get(name);
  if (value !== null && value !== '') return value;
  throw refused(`The request has no header ${name}. Check which signature the sender uses`);
}

const prefixed = (value: string, prefix: string) => (value.startsWith(prefix) ? value.slice(prefix.length) : '');

/** A signature that was sent once could be sent again for ever. */
function refuseOtherTimes(time: string, { now }: ReceivedRequest, { tolerance_seconds }: WebhookConfig): void {
  const seconds = /^\d{1,12}$/.test(time) ? Number(time) : Number.NaN;
  if (Math.abs(now / 1000 - seconds) <= tolerance_seconds) return;
  const message = `The time of the signature is missing or differs by more than ${tolerance_seconds} s from that of the service`;
  throw new AuthenticationError('webhook_time_refused', message);
}

const refused = (message: string) => new AuthenticationError('webhook_signature_refused', message);
