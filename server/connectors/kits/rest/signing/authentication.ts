import {
  type AwsCredentials,
  awsSigner,
  type HmacCredentials,
  hmacSigner,
  type JwtCredentials,
  jwtSigner,
} from './signatures.ts';
import { basicHeader, type TokenContext, type TokenEndpoint, tokenSigner } from './oauth.ts';
import type { Signer } from './signer.ts';

/** How requests are signed, with every value filled in. */
export type Authentication =
  | { type: 'none' }
  | { type: 'bearer'; token: string }
  | { type: 'api_key'; in: 'header' | 'query'; name: string; value: string }
  | { type: 'basic'; username: string; password: string }
  | ({ type: 'jwt' } & JwtCredentials)
  | ({ type: 'hmac' } & HmacCredentials)
  | ({ type: 'aws_sigv4' } & AwsCredentials)
  | TokenEndpoint;

export function createSigner(ctx: TokenContext & { now(): Date }, authentication: Authentication): Signer {
  switch (authentication.type) {
    case 'none':
      return fixedSigner(() => ({}));
    case 'bearer':
      return bearerSigner(authentication.token);
    case 'basic':
      return basicSigner(authentication.username, authentication.password);
    case 'api_key':
      return keySigner(authentication.in, authentication.name, authentication.value);
    case 'jwt':
      return jwtSigner(() => ctx.now(), authentication);
    case 'hmac':
      return hmacSigner(() => ctx.now(), authentication);
    case 'aws_sigv4':
      return awsSigner(() => ctx.now(), authentication);
    default:
      return tokenSigner(ctx, authentication);
  }
}

export const bearerSigner = (token: string): Signer => fixedSigner(() => ({ authorization: `Bearer ${token}` }));

export const basicSigner = (username: string, password: string): Signer =>
  fixedSigner(() => ({ authorization: basicHeader(username, password) }));

export function keySigner(place: 'header' | 'query', name: string, value: string): Signer {
  if (place === 'header') return fixedSigner(() => ({ [name.toLowerCase()]: value }));
  return fixedSigner((url) => {
    url.searchParams.set(name, value);
    return {};
  });
}

/** Credentials that never change. @param apply returns headers, and may change the URL */
export const fixedSigner = (apply: (url: URL) => Record<string, string>): Signer => ({
  current: async () => null,
  sign(request) {
    const url = new URL(request.url);
    return { headers: { ...request.headers, ...apply(url) }, url };
  },
  renew: () => false,
});
