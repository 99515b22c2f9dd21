/** No response arrived. The message names the address, the cause and what to do. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError';

  constructor(address: string, cause: unknown) {
    super(`Cannot reach ${originOf(address)}: ${explained(cause)}`, { cause });
  }
}

/** By the code of the runtime's error. */
const CAUSES: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused. Check the port, and that the service is running.',
  ENOTFOUND: 'the host name is unknown. Check its spelling.',
  EAI_AGAIN: 'the name server did not answer. Check the network of this machine.',
  ECONNRESET: 'the connection was closed before a response arrived. Try again.',
  ETIMEDOUT: 'it did not answer in time. Check the address, firewalls and proxies.',
  EHOSTUNREACH: 'there is no route to the host. Check the network and VPN.',
  ENETUNREACH: 'there is no route to the host. Check the network and VPN.',
  EPROTO: 'it does not speak TLS on this port. Use http:// or another port.',
  CERT_HAS_EXPIRED: 'its certificate has expired.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name. Check the address.',
};
const ALIASES: Record<string, string> = {
  ConnectionRefused: 'ECONNREFUSED',
  ConnectionClosed: 'ECONNRESET',
  UND_ERR_SOCKET: 'ECONNRESET',
  UND_ERR_CONNECT_TIMEOUT: 'ETIMEDOUT',
};
const UNKNOWN_ISSUER = /SELF_SIGNED|UNABLE_TO|UNKNOWN_ISSUER/;

function explained(error: unknown): string {
  const code = codeOf(error);
  const known = CAUSES[ALIASES[code] ?? code];
  if (known) return known;
  if (UNKNOWN_ISSUER.test(code))
    return 'its certificate is not trusted. Set NODE_EXTRA_CA_CERTS to the file of the certificate authority.';
  return `${error instanceof Error ? error.message : String(error)}${code ? ` (${code})` : ''}`;
}

/** Node has the code in the cause of "fetch failed". */
function codeOf(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown } };
  const found = code ?? cause?.code;
  return typeof found === 'string' ? found : '';
}

const originOf = (address: string): string => URL.parse(address)?.origin ?? address;
