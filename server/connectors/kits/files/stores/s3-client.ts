import { AwsV4Signer } from 'aws4fetch';
import { ConfigurationError } from '../../../contract/errors.ts';
import type { S3Location } from '../settings/location.ts';
import { type NetworkContext, type RemoteCall, repeated, request, textOf } from './http-request.ts';
import { parseXml, refusalOf, s3Error } from './s3-failures.ts';

export interface S3Call {
  method: string;
  /** Absent or empty: the bucket itself. */
  key?: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: Uint8Array<ArrayBuffer> | string;
  /** Statuses beside 2xx that are not errors. */
  accept?: number[];
}

/** How requests show who sends them. */
export interface BucketAccess {
  sign(call: RemoteCall): Promise<RemoteCall>;
  /** After the store has answered 401. @returns whether the next signature differs */
  renew(): boolean;
}

/**
 * A client of one bucket. Requests are signed here and sent by `ctx.fetch`, which checks the address and records the
 * request. Bun's own S3 client would bypass both, and a presigned address in the network log would work like a key.
 */
export class Bucket {
  private readonly base: URL;

  constructor(
    readonly ctx: NetworkContext,
    readonly settings: S3Location,
    private readonly access: BucketAccess = keyAccess(settings),
  ) {
    const { endpoint, region, bucket = '', path_style } = settings;
    this.base = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`);
    if (!path_style) this.base.hostname = `${bucket}.${this.base.hostname}`;
    this.base.pathname = `${this.base.pathname.replace(/\/$/, '')}/${path_style ? encodeURIComponent(bucket) : ''}`;
  }

  /** @throws ConnectorError for a status that is neither 2xx nor in `accept` */
  async send(call: S3Call): Promise<Response> {
    const { timeout_seconds, bucket = '' } = this.settings;
    const { method, key = '', query = {}, headers = {}, body } = call;
    const url = this.urlOf(key, query);
    return repeated(this.ctx, async () => {
      for (let renewed = false; ; renewed = true) {
        const signed = await this.access.sign({ method, url, headers, ...(body !== undefined && { body }) });
        const answer = await request(this.ctx, signed, timeout_seconds);
        if (answer.ok || call.accept?.includes(answer.status)) return answer;
        const text = await textOf(this.ctx, answer, timeout_seconds);
        if (answer.status === 401 && !renewed && this.access.renew()) continue;
        throw s3Error(refusalOf(answer.status, text, { bucket, key }));
      }
    });
  }

  /** Sends a request whose response is an XML document. @returns the content of its `root` element */
  async document(call: S3Call, root: string): Promise<Record<string, unknown>> {
    const answer = await this.send(call);
    const text = await textOf(this.ctx, answer, this.settings.timeout_seconds);
    const found = parseXml(text);
    if (found && root in found) return (found[root] || {}) as Record<string, unknown>;
    // CompleteMultipartUpload can respond 200 and fail afterwards.
    if (found?.Error) throw s3Error(refusalOf(500, text, { bucket: this.settings.bucket ?? '', key: call.key ?? '' }));
    throw new ConfigurationError('endpoint_not_s3', `${this.base.host} does not respond like an S3 endpoint`);
  }

  private urlOf(key: string, query: Record<string, string>): URL {
    if (key.split('/').some((segment) => segment === '.' || segment === '..')) {
      throw new ConfigurationError('key_unreachable', `The key "${key}" cannot be part of an address`);
    }
    const url = new URL(this.base);
    if (key) url.pathname = `${url.pathname.replace(/\/$/, '')}/${key.split('/').map(encodeURIComponent).join('/')}`;
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url;
  }
}

/** Signatures by an access key. */
function keyAccess(settings: S3Location): BucketAccess {
  const { access_key_id = '', secret_access_key = '', session_token, region } = settings;
  // Keeps the key of the day, which takes four more signatures to derive from the secret.
  const cache = new Map<string, ArrayBuffer>();
  const sign: BucketAccess['sign'] = async ({ method, url, headers, body }) => {
    const signer = new AwsV4Signer({
      method,
      url: url.href,
      headers: { ...headers, 'x-amz-content-sha256': sha256(body ?? '') },
      body,
      accessKeyId: access_key_id,
      secretAccessKey: secret_access_key,
      sessionToken: session_token,
      service: 's3',
      region,
      cache,
    });
    const signed = await signer.sign();
    return {
      method,
      url: signed.url,
      headers: Object.fromEntries(signed.headers),
      ...(body !== undefined && { body }),
    };
  };
  return { sign, renew: () => false };
}

const sha256 = (body: Uint8Array | string) => new Bun.CryptoHasher('sha256').update(body).digest('hex');
