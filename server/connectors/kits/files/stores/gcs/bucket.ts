import { z } from 'zod';
import type { ConnectorContext } from '../../../../contract/connector.ts';
import {
  AuthenticationError,
  ConfigurationError,
  type ConnectorError,
  RetryableError,
} from '../../../../contract/errors.ts';
import { sharedKey } from '../../../rest/rate-limiter.ts';
import { serverMessage } from '../../../rest/failures.ts';
import { signJwt } from '../../../rest/signing/jwt.ts';
import { flowSigner } from '../../../rest/signing/oauth.ts';
import type { Signer } from '../../../rest/signing/authentication.ts';
import type { GcsLocation } from '../../settings/gcs.ts';
import { repeated, request, textOf } from '../http-request.ts';

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

const READ_ONLY = 'https://www.googleapis.com/auth/devstorage.read_only';
const TOKEN_SECONDS = 3600;

/** A client of one bucket, by the JSON API. */
export class GcsBucket {
  readonly #signer: Signer;

  constructor(readonly ctx: GcsContext) {
    this.#signer = signerOf(ctx);
  }

  get host(): string {
    return this.#base().host;
  }

  #base = (): URL => new URL(this.ctx.config.endpoint ?? 'https://storage.googleapis.com');

  /** @param object its key; empty for the list of objects. @throws ConnectorError for a status other than 2xx */
  async get(object: string, query: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> {
    const { ctx } = this;
    const { timeout_seconds, bucket = '' } = ctx.config;
    const url = this.#base();
    const key = object && `/${encodeURIComponent(object)}`;
    url.pathname = `${url.pathname.replace(/\/$/, '')}/storage/v1/b/${encodeURIComponent(bucket)}/o${key}`;
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return repeated(ctx, async () => {
      for (let renewed = false; ; renewed = true) {
        const token = await this.#signer.current();
        const all = { 'accept-encoding': 'identity', ...headers };
        const signed = await this.#signer.sign({ method: 'GET', url, headers: all, body: null }, token);
        const answer = await request(ctx, { method: 'GET', url, headers: signed.headers }, timeout_seconds);
        if (answer.ok) return answer;
        const text = await textOf(ctx, answer, timeout_seconds);
        if (answer.status === 401 && !renewed && this.#signer.renew(token)) continue;
        const message = serverMessage(text, answer.headers.get('content-type'));
        throw gcsError(answer.status, message, { bucket, object });
      }
    });
  }
}

/** @throws ConfigurationError if the key is not that of a service account */
function signerOf(ctx: GcsContext): Signer {
  const account = accountOf(ctx.config.service_account_key ?? '');
  const { client_email, private_key, private_key_id, token_uri } = account;
  const assertion = () => {
    const iat = Math.floor(ctx.now().getTime() / 1000);
    const payload = { iss: client_email, scope: READ_ONLY, aud: token_uri, iat, exp: iat + TOKEN_SECONDS };
    const headers = private_key_id === undefined ? {} : { kid: private_key_id };
    return signJwt({ algorithm: 'RS256', key: private_key, headers, payload });
  };
  return flowSigner(ctx, {
    key: sharedKey({ ...account, scope: READ_ONLY }),
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

function gcsError(
  status: number,
  message: string,
  { bucket, object }: { bucket: string; object: string },
): ConnectorError {
  const place = object ? `"${object}" in "${bucket}"` : `the bucket "${bucket}"`;
  const detail = message ? `: ${message}` : '';
  if (status === 401) return new AuthenticationError('unauthorized', `The store rejected the service account${detail}`);
  if (status === 403) {
    const text = `The service account has no permission to list and read ${place}${detail}`;
    return new ConfigurationError('access_denied', text);
  }
  if (object && (status === 404 || status === 412)) {
    return new RetryableError('file_changed', `${object} changed or was deleted after it was listed`);
  }
  if (status === 404) return new ConfigurationError('bucket_not_found', `Bucket "${bucket}" not found`);
  const text = `The store responded ${status} for ${place}${detail}`;
  if (status === 429 || status >= 500) return new RetryableError('server_error', text);
  return new ConfigurationError('store_refused', text);
}
