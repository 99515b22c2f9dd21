import type { Call } from './send.ts';
import { basicHeader, type TokenContext, type TokenEndpoint, tokenSigner } from './oauth.ts';

/** How requests are signed, every value filled in. */
export type Authentication =
  | { type: 'none' }
  | { type: 'bearer'; token: string }
  | { type: 'api_key'; in: 'header' | 'query'; name: string; value: string }
  | { type: 'basic'; username: string; password: string }
  | TokenEndpoint;

export interface Signer {
  /** The token to sign with; null for ways without one. @throws ConnectorError when none is to be had */
  current(): Promise<string | null>;
  sign(call: Call, token: string | null): { url: URL; headers: Record<string, string> };
  /** Whether another token may help where this one was refused; the next `current` gets it. */
  renew(refused: string | null): boolean;
}

export function createSigner(ctx: TokenContext, authentication: Authentication): Signer {
  switch (authentication.type) {
    case 'none':
      return fixed(() => ({}));
    case 'bearer':
      return fixed(() => ({ authorization: `Bearer ${authentication.token}` }));
    case 'basic':
      return fixed(() => ({ authorization: basicHeader(authentication.username, authentication.password) }));
    case 'api_key': {
      const { name, value } = authentication;
      if (authentication.in === 'header') return fixed(() => ({ [name.toLowerCase()]: value }));
      return fixed((url) => {
        url.searchParams.set(name, value);
        return {};
      });
    }
    default:
      return tokenSigner(ctx, authentication);
  }
}

/** @param apply gives headers, and may change the address */
export const fixed = (apply: (url: URL) => Record<string, string>): Signer => ({
  current: async () => null,
  sign(call) {
    const url = new URL(call.url);
    return { headers: { ...call.headers, ...apply(url) }, url };
  },
  renew: () => false,
});
