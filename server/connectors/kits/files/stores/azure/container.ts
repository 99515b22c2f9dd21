import { createHmac } from 'node:crypto';
import {
  AuthenticationError,
  ConfigurationError,
  type ConnectorError,
  RetryableError,
} from '../../../../contract/errors.ts';
import type { ConnectorContext } from '../../../../contract/connector.ts';
import type { AzureLocation } from '../../settings/azure.ts';
import { repeated, request, textOf } from '../http-request.ts';
import { parseXml } from '../s3-failures.ts';

export type AzureContext = Pick<ConnectorContext<AzureLocation>, 'config' | 'fetch' | 'signal' | 'now'>;

interface ContainerCall {
  /** Empty: the container itself. */
  blob: string;
  /** Default: GET. */
  method?: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: Uint8Array<ArrayBuffer> | string;
  /** Statuses beside 2xx that are not errors, and codes of errors. */
  accept?: number[];
  accept_codes?: string[];
}

const VERSION = '2021-12-02';

/** A client of one container, which signs requests with the account's key or adds a shared access signature. */
export class Container {
  constructor(readonly ctx: AzureContext) {}

  /** @throws ConnectorError for a status that is neither 2xx nor accepted */
  async send(call: ContainerCall): Promise<Response> {
    const { blob, method = 'GET', query = {}, headers = {}, body } = call;
    const { ctx } = this;
    const { timeout_seconds } = ctx.config;
    return repeated(ctx, async () => {
      const url = this.#url(blob, query);
      const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/octet-stream' };
      const sent: Record<string, string> = {
        ...headers,
        ...type,
        'x-ms-date': ctx.now().toUTCString(),
        'x-ms-version': VERSION,
      };
      const signature = this.#signature({ method, url, headers: sent, length: Buffer.byteLength(body ?? '') });
      const all = { 'accept-encoding': 'identity', ...sent, ...(signature && { authorization: signature }) };
      const sending = { method, url: this.#shared(url), headers: all, ...(body !== undefined && { body }) };
      const answer = await request(ctx, sending, timeout_seconds);
      if (answer.ok || call.accept?.includes(answer.status)) return answer;
      if (call.accept_codes?.includes(answer.headers.get('x-ms-error-code') ?? '')) return answer;
      const text = await textOf(ctx, answer, timeout_seconds);
      throw azureError(answer.status, refusalOf(answer, text), { container: ctx.config.bucket ?? '', blob });
    });
  }

  /** Lists one page of the blobs whose names start with `prefix`. */
  async page(prefix: string, marker: string): Promise<Record<string, unknown>> {
    const query = { restype: 'container', comp: 'list', prefix, ...(marker && { marker }) };
    const answer = await this.send({ blob: '', query });
    const found = parseXml(await textOf(this.ctx, answer, this.ctx.config.timeout_seconds));
    if (found?.EnumerationResults) return found.EnumerationResults as Record<string, unknown>;
    throw new ConfigurationError('endpoint_not_azure', `${this.#base().host} does not respond like Azure Blob Storage`);
  }

  #base(): URL {
    const { endpoint, storage_account = '' } = this.ctx.config;
    return new URL(endpoint ?? `https://${encodeURIComponent(storage_account)}.blob.core.windows.net`);
  }

  #url(blob: string, query: Record<string, string>): URL {
    if (blob.split('/').some((segment) => segment === '.' || segment === '..')) {
      throw new ConfigurationError('key_unreachable', `The name "${blob}" cannot be part of an address`);
    }
    const url = this.#base();
    const path = [this.ctx.config.bucket ?? '', ...(blob ? blob.split('/') : [])].map(encodeURIComponent).join('/');
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${path}`;
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url;
  }

  /** Takes the signature as it was entered, so that logs recognize it as a secret. */
  #shared(url: URL): URL {
    const token = this.ctx.config.sas_token?.replace(/^\?/, '');
    return token ? new URL(`${url.href}${url.search ? '&' : '?'}${token}`) : url;
  }

  /** Shared Key. Null with a shared access signature. */
  #signature({ method, url, headers, length }: Signing): string | null {
    const { storage_account = '', account_key } = this.ctx.config;
    if (account_key === undefined) return null;
    const own = Object.entries(headers).filter(([name]) => name.startsWith('x-ms-'));
    const query = [...url.searchParams].map(([name, value]) => `\n${name}:${value}`);
    const canonical = own.map(([name, value]) => `${name}:${value}\n`).toSorted();
    const resource = `/${storage_account}${url.pathname}${query.toSorted().join('')}`;
    const ranged = ['', '', headers['if-match'] ?? '', '', '', headers.range ?? ''];
    // One line for each header that can be signed, most of them absent. A length of zero is left out.
    const standard = [method, '', '', length || '', '', headers['content-type'] ?? '', ...ranged];
    const text = `${standard.join('\n')}\n${canonical.join('')}${resource}`;
    const signed = createHmac('sha256', Buffer.from(account_key, 'base64')).update(text, 'utf8').digest('base64');
    return `SharedKey ${storage_account}:${signed}`;
  }
}

interface Signing {
  method: string;
  url: URL;
  headers: Record<string, string>;
  /** Of the body, in bytes. */
  length: number;
}

interface Refusal {
  code: string;
  message: string;
}

function refusalOf(answer: Response, text: string): Refusal {
  const [error] = (parseXml(text)?.Error ?? []) as { Code?: string; Message?: string }[];
  return { code: answer.headers.get('x-ms-error-code') ?? error?.Code ?? '', message: error?.Message ?? '' };
}

function azureError(
  status: number,
  { code, message }: Refusal,
  { container, blob }: { container: string; blob: string },
): ConnectorError {
  const place = blob ? `"${blob}" in "${container}"` : `the container "${container}"`;
  // Stores use the code of a missing permission for a wrong signature, too.
  if (/^(AuthenticationFailed|InvalidAuthenticationInfo)$/.test(code) || /failed to authenticate/i.test(message)) {
    return new AuthenticationError(
      'account_key_wrong',
      'The store rejected the account key or the shared access signature. Check it, its time and the account',
    );
  }
  switch (code) {
    case 'ContainerNotFound':
    case 'InvalidResourceName':
      return new ConfigurationError('bucket_not_found', `Container "${container}" not found`);
    case 'BlobNotFound':
    case 'ConditionNotMet':
      return new RetryableError('file_changed', `${blob} changed or was deleted after it was listed`);
  }
  if (status === 412) return new RetryableError('file_changed', `${blob} changed while it was being read`);
  if (status === 401 || status === 403) {
    return new ConfigurationError(
      'access_denied',
      `The credentials have no permission to list, read or write ${place}`,
    );
  }
  const text = `The store responded ${status} for ${place}${code ? `: ${code}` : ''}`;
  if (status === 429 || status >= 500) return new RetryableError('server_error', text);
  if (code === '') return new ConfigurationError('endpoint_not_azure', `${text}. Check the endpoint`);
  return new ConfigurationError('store_refused', text);
}
