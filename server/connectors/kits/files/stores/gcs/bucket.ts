import {
  AuthenticationError,
  ConfigurationError,
  type ConnectorError,
  RetryableError,
} from '../../../../contract/errors.ts';
import { serverMessage } from '../../../rest/failures.ts';
import { repeated, request, textOf } from '../http-request.ts';
import { type GcsContext, googleSigner, READ_ONLY } from './service-account.ts';
import type { Signer } from '../../../rest/signing/signer.ts';

/** A client of one bucket, by the JSON API. */
export class GcsBucket {
  readonly #signer: Signer;

  constructor(readonly ctx: GcsContext) {
    this.#signer = googleSigner(ctx, READ_ONLY);
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
