import { ConfigurationError } from '../../contract/errors.ts';
import type { Signer } from '../../kits/rest/signing/authentication.ts';
import type { HttpRequest } from '../../kits/rest/send.ts';
import type { PythonSession } from './session.ts';

/** A request as components get and return it. */
export interface WireRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | null;
}

export const wireOf = ({ method, url, headers, body }: HttpRequest): WireRequest => ({
  method,
  url: url.href,
  headers,
  body,
});

/** An authenticator in Python. It keeps its tokens itself. */
export function pythonSigner(python: PythonSession, component: unknown): Signer {
  return {
    current: async () => null,
    async sign(request) {
      const signed = (await python.call(component, 'sign', [wireOf(request)])) as WireRequest;
      const url = URL.parse(signed.url);
      if (url?.origin !== request.url.origin) {
        throw new ConfigurationError(
          'foreign_address',
          `The authenticator of components.py changes the host of a request`,
        );
      }
      return { url, headers: signed.headers, ...(signed.body !== null && { body: signed.body }) };
    },
    renew: () => false,
  };
}
