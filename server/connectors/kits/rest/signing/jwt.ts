import { constants, createHmac, createPrivateKey, sign } from 'node:crypto';
import { ConfigurationError } from '../../../contract/errors.ts';

export const JWT_ALGORITHMS = [
  'HS256',
  'HS384',
  'HS512',
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;
export type JwtAlgorithm = (typeof JWT_ALGORITHMS)[number];

export interface JwtClaims {
  algorithm: JwtAlgorithm;
  /** A shared secret, or a private key in PEM. */
  key: string;
  /** Of an encrypted private key. */
  passphrase?: string | undefined;
  headers: Record<string, unknown>;
  payload: Record<string, unknown>;
}

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A signed JSON Web Token. @throws ConfigurationError when the key does not fit the algorithm */
export function signJwt({ algorithm, key, passphrase, headers, payload }: JwtClaims): string {
  const input = `${part({ typ: 'JWT', ...headers, alg: algorithm })}.${part(payload)}`;
  const hash = `sha${algorithm.slice(2)}`;
  try {
    if (algorithm.startsWith('HS')) return `${input}.${createHmac(hash, key).update(input).digest('base64url')}`;
    const privateKey = createPrivateKey({ key, ...(passphrase && { passphrase }) });
    const options = {
      key: privateKey,
      ...(algorithm.startsWith('ES') && { dsaEncoding: 'ieee-p1363' as const }),
      ...(algorithm.startsWith('PS') && {
        padding: constants.RSA_PKCS1_PSS_PADDING,
        saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
      }),
    };
    const signature = sign(algorithm === 'EdDSA' ? null : hash, Buffer.from(input), options);
    return `${input}.${signature.toString('base64url')}`;
  } catch (error) {
    throw new ConfigurationError(
      'invalid_key',
      `The key cannot sign tokens with ${algorithm}. Check the key and its passphrase`,
      {
        cause: error,
      },
    );
  }
}
