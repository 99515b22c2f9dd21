import { z } from 'zod';
import type { ConnectorContext } from '../../../../contract/connector.ts';
import { ConfigurationError } from '../../../../contract/errors.ts';
import { sharedKey } from '../../../rest/rate-limiter.ts';
import { signJwt } from '../../../rest/signing/jwt.ts';
import { flowSigner } from '../../../rest/signing/oauth.ts';
import type { GcsLocation } from '../../settings/gcs.ts';
import type { Signer } from '../../../rest/signing/signer.ts';

export type GcsContext = Pick<
  ConnectorContext<GcsLocation>,
  'config' | 'fetch' | 'signal' | 'now' | 'warn' | 'rotateSecret'
>;

const ServiceAccount = z.object({
  client_email: z.string().min(1),
  private_key: z.string().min(1),
  private_key_id: z.string().optional(),
  token_uri: z.url({ protocol: /^https?$/ }).default('https://oauth2.googleapis.com/token'),
});

export const READ_ONLY = 'https://www.googleapis.com/auth/devstorage.read_only';
export const READ_WRITE = 'https://www.googleapis.com/auth/devstorage.read_write';
const TOKEN_SECONDS = 3600;

/** Signs requests with tokens of a scope. @throws ConfigurationError if the key is not that of a service account */
export function googleSigner(ctx: GcsContext, scope: string): Signer {
  const account = accountOf(ctx.config.service_account_key ?? '');
  const { client_email, private_key, private_key_id, token_uri } = account;
  const assertion = () => {
    const iat = Math.floor(ctx.now().getTime() / 1000);
    const payload = { iss: client_email, scope, aud: token_uri, iat, exp: iat + TOKEN_SECONDS };
    const headers = private_key_id === undefined ? {} : { kid: private_key_id };
    return signJwt({ algorithm: 'RS256', key: private_key, headers, payload });
  };
  return flowSigner(ctx, {
    key: sharedKey({ ...account, scope }),
    url: token_uri,
    refresh_token: null,
    request: () => ({
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: assertion(),
      }).toString(),
    }),
    names: { access_token: 'access_token', expires_in: 'expires_in', refresh_token: 'refresh_token' },
    sign: (token) => ({ authorization: `Bearer ${token}` }),
  });
}

function accountOf(text: string): z.infer<typeof ServiceAccount> {
  const refused = new ConfigurationError(
    'service_account_key_invalid',
    'The service account key is not the JSON file of a service account. Create a key of the type JSON and enter the whole file',
  );
  try {
    const parsed = ServiceAccount.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
  } catch {
    throw refused;
  }
  throw refused;
}
