import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

/**
 * `forbidden`: never a valid target, such as the metadata services of clouds. `internal`: loopback, private networks and
 * everything else that is not the public Internet.
 */
export type AddressKind = 'public' | 'internal' | 'forbidden';

const NEVER = new Set(['unspecified', 'linkLocal', 'multicast', 'broadcast', 'discard']);

/** Metadata services at addresses that are not link-local: Alibaba, Azure, Oracle, AWS, Google. */
const METADATA = ['100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32', 'fd00:ec2::/32', 'fd20:ce::254/128'].map(
  (range) => ipaddr.parseCIDR(range),
);

/** The same services by name. A jump host may resolve them even if this machine does not. */
const METADATA_NAMES = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'metadata.packet.net',
  'instance-data',
  'instance-data.ec2.internal',
]);

/** A host in the form that rules compare: lower case, without brackets and without the trailing dot. */
export const plainHost = (host: string) =>
  host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');

export const isMetadataName = (host: string) => METADATA_NAMES.has(plainHost(host));

/** The canonical form of a host that is an address, however it is written (`127.1`, `0x7f.0.0.1`); null for a name. */
export function literalAddress(host: string): string | null {
  const plain = plainHost(host);
  return ipaddr.isValid(plain) ? ipaddr.process(plain).toString() : null;
}

/** An address that embeds another one has the stricter kind of the two. */
export function addressKind(address: string): AddressKind {
  const parsed = ipaddr.process(address);
  const range = parsed.range();
  if (NEVER.has(range) || METADATA.some((one) => one[0].kind() === parsed.kind() && parsed.match(one))) {
    return 'forbidden';
  }
  if (parsed.kind() === 'ipv4') return range === 'unicast' ? 'public' : 'internal';
  const inner = embedded(parsed.toByteArray()).map((bytes) => addressKind(bytes.join('.')));
  if (inner.includes('forbidden')) return 'forbidden';
  return range === 'unicast' && !inner.includes('internal') ? 'public' : 'internal';
}

/** The IPv4 addresses that an IPv6 address can stand for. */
function embedded(bytes: number[]): number[][] {
  const starts = (...prefix: number[]) => prefix.every((byte, at) => bytes[at] === byte);
  const last = bytes.slice(12);
  // 6to4, and Teredo, which inverts the client's address.
  if (starts(0x20, 0x02)) return [bytes.slice(2, 6)];
  if (starts(0x20, 0x01, 0, 0)) return [bytes.slice(4, 8), last.map((byte) => byte ^ 0xff)];
  // NAT64, with the well-known prefix and with the local one, which leaves a gap after two bytes.
  if (starts(0, 0x64, 0xff, 0x9b, 0, 0)) return [last];
  if (starts(0, 0x64, 0xff, 0x9b)) return [last, [bytes[6]!, bytes[7]!, bytes[9]!, bytes[10]!]];
  const isatap = (bytes[8]! & 0xfd) === 0 && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;
  if (isatap) return [last];
  // IPv4-compatible and IPv4-translated. `::` and `::1` embed nothing.
  if (bytes.slice(0, 8).some((byte) => byte !== 0)) return [];
  const middle = bytes.slice(8, 12);
  const compatible = middle.every((byte) => byte === 0) && (last[0] !== 0 || last[1] !== 0 || last[2] !== 0);
  const translated = middle[0] === 0xff && middle[1] === 0xff && middle[2] === 0 && middle[3] === 0;
  return compatible || translated ? [last] : [];
}

export const isLoopback = (address: string) => ipaddr.process(address).range() === 'loopback';

/** Loopback, or an address of one of this machine's interfaces. */
export function isThisMachine(address: string): boolean {
  if (isLoopback(address)) return true;
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return own.some((one) => sameAddress(one.address, address));
}

export const sameAddress = (a: string, b: string) => ipaddr.process(a).toString() === ipaddr.process(b).toString();

/** Whether a text is an IP address or a network in CIDR notation. */
export const isNetwork = (text: string): boolean => ipaddr.isValid(text) || ipaddr.isValidCIDR(text);

/**
 * The address of the client behind trusted proxies: each of them appends the address that it was called from to
 * X-Forwarded-For, so the last one that is not a proxy is the client. What clients write there themselves stands before it.
 */
export function clientAddress(peer: string, forwarded: string | null, proxies: readonly string[]): string {
  const isProxy = (address: string) => proxies.some((proxy) => isWithin(address, proxy));
  let client = peer;
  for (const hop of (forwarded ?? '').split(',').toReversed()) {
    const address = hop.trim();
    if (!ipaddr.isValid(address) || !ipaddr.isValid(client) || !isProxy(client)) break;
    client = address;
  }
  return client;
}

/** @param target an address or a range in CIDR notation; anything else contains no address */
export function isWithin(address: string, target: string): boolean {
  const parsed = ipaddr.process(address);
  if (ipaddr.isValid(target)) return sameAddress(target, address);
  if (!ipaddr.isValidCIDR(target)) return false;
  const [network, bits] = ipaddr.parseCIDR(target);
  return network.kind() === parsed.kind() && parsed.match(network, bits);
}
