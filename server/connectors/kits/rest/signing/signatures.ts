import { createHmac } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';
import { type JwtClaims, signJwt } from './jwt.ts';
import type { HttpRequest } from '../request.ts';
import type { SignedRequest, Signer } from './signer.ts';

export interface JwtCredentials extends Omit<JwtClaims, 'payload'> {
  /** Besides `iat`, `nbf` and `exp`. */
  claims: Record<string, unknown>;
  lifetime_seconds: number;
  header: string;
  /** Before the token; empty: nothing. */
  prefix: string;
}

export interface HmacCredentials {
  algorithm: 'sha1' | 'sha256' | 'sha512';
  key: string;
  /** What is signed: `{{ request.method }}`, and `path`, `query`, `body` and `timestamp`. */
  message: string;
  header: string;
  encoding: 'hex' | 'base64';
  /** Before the signature. */
  prefix: string;
  /** Receives the seconds since 1970 that `{{ request.timestamp }}` stands for. */
  timestamp_header?: string | undefined;
}

export interface AwsCredentials {
  access_key_id: string;
  secret_access_key: string;
  session_token?: string | undefined;
  region: string;
  service: string;
}

type Clock = () => Date;

/** Requests with a signature of their own: there is no token to obtain or renew. */
const signer = (sign: (request: HttpRequest) => SignedRequest | Promise<SignedRequest>): Signer => ({
  current: async () => null,
  sign,
  renew: () => false,
});

const withHeaders = (request: HttpRequest, more: Record<string, string>): SignedRequest => ({
  url: new URL(request.url),
  headers: { ...request.headers, ...more },
});

/** A token for each request, so that it does not expire on the way. */
export const jwtSigner = (now: Clock, { claims, lifetime_seconds, header, prefix, ...key }: JwtCredentials): Signer =>
  signer((request) => {
    const at = Math.floor(now().getTime() / 1000);
    const token = signJwt({ ...key, payload: { ...claims, iat: at, nbf: at, exp: at + lifetime_seconds } });
    return withHeaders(request, { [header.toLowerCase()]: prefix === '' ? token : `${prefix} ${token}` });
  });

export const REQUEST_PARTS = ['method', 'path', 'query', 'body', 'timestamp'] as const;
const REFERENCE = /\{\{\s*request\.(\w+)\s*\}\}/g;

export const hmacSigner = (now: Clock, hmac: HmacCredentials): Signer =>
  signer((request) => {
    const timestamp = String(Math.floor(now().getTime() / 1000));
    const { method, url, body } = request;
    const parts: Record<string, string> = {
      method,
      path: url.pathname,
      query: url.search.slice(1),
      body: body ?? '',
      timestamp,
    };
    const message = hmac.message.replaceAll(REFERENCE, (_, name: string) => parts[name] ?? '');
    const signature = createHmac(hmac.algorithm, hmac.key).update(message).digest(hmac.encoding);
    const stamped = hmac.timestamp_header ? { [hmac.timestamp_header.toLowerCase()]: timestamp } : {};
    return withHeaders(request, { ...stamped, [hmac.header.toLowerCase()]: `${hmac.prefix}${signature}` });
  });

/** Signature Version 4 of Amazon Web Services. */
export function awsSigner(now: Clock, aws: AwsCredentials): Signer {
  // Keeps the key of the day, which takes four more signatures to derive from the secret.
  const cache = new Map<string, ArrayBuffer>();
  return signer(async ({ method, url, headers, body }) => {
    const signed = await new AwsV4Signer({
      method,
      url: url.href,
      headers,
      ...(body !== null && { body }),
      accessKeyId: aws.access_key_id,
      secretAccessKey: aws.secret_access_key,
      ...(aws.session_token && { sessionToken: aws.session_token }),
      region: aws.region,
      service: aws.service,
      datetime: now()
        .toISOString()
        .replaceAll(/[:-]|\.\d{3}/g, ''),
      cache,
    }).sign();
    return { url: signed.url, headers: Object.fromEntries(signed.headers) };
  });
}
