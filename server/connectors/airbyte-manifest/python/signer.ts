import { ConfigurationError } from '../../contract/errors.ts';
import type { PythonSession } from './session.ts';
import { type WireRequest, wireOf } from './wire.ts';
import type { Signer } from '../../kits/rest/signing/signer.ts';

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
