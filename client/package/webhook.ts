import { Webhook } from 'standardwebhooks';

const SIGNED = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];

/**
 * The payload of a webhook that a trigger sent. Headers are those of Node or of `Object.fromEntries(request.headers)`.
 * @throws an Error unless the signature fits the body and the secret, and the call is at most five minutes old.
 */
export function verifyWebhook(
  body: string,
  headers: Record<string, string | string[] | undefined>,
  secret: string,
): unknown {
  const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const signed = SIGNED.map((name) => [name, String(lower.get(name) ?? '')]);
  const verifier = secret.startsWith('whsec_') ? new Webhook(secret) : new Webhook(secret, { format: 'raw' });
  return verifier.verify(body, Object.fromEntries(signed));
}
