import type { HttpRequest } from '../request.ts';

export interface SignedRequest {
  url: URL;
  headers: Record<string, string>;
  /** Absent: that of the request. */
  body?: string;
}

export interface Signer {
  /** The token to sign with; null for methods without one. @throws ConnectorError when no token can be obtained */
  current(): Promise<string | null>;
  sign(request: HttpRequest, token: string | null): SignedRequest | Promise<SignedRequest>;
  /** Discards a refused token. True: the next `current` returns another one, so a retry may succeed. */
  renew(refused: string | null): boolean;
}
