import { lookup as resolve } from 'node:dns/promises';
import { isIPv6 } from 'node:net';
import {
  addressKind,
  isLoopback,
  isMetadataName,
  isThisMachine,
  isWithin,
  literalAddress,
  plainHost,
  sameAddress,
} from './addresses.ts';

/** The service must not call the address. The message contains the host and the reason, but no resolved address. */
export class EgressError extends Error {
  override name = 'EgressError';
  constructor(
    readonly code: 'unsupported_scheme' | 'invalid_address' | 'address_not_allowed' | 'host_not_found',
    message: string,
  ) {
    super(message);
  }
}

export interface Address {
  address: string;
  family: number;
}

export interface EgressRules {
  /** `host:port` or `cidr:port` that may be called even if the address is not public, and over plain http. */
  allow: readonly string[];
  /** Loopback and private addresses may be called without an entry in `allow`. */
  internal?: boolean;
  /** Plain http may be used for public addresses, too. */
  http?: boolean;
  /** The control database, `postgres://host:port/database`, which must never be called. */
  control?: string;
  /** Resolves a name to all its addresses. Default: the system's resolver. */
  lookup?(host: string): Promise<Address[]>;
}

export interface Place {
  host: string;
  port: number;
  /** PostgreSQL only: other databases on the server of the control database may be called. */
  database?: string;
}

/**
 * Resolves and checks all addresses of a place. Connect to one of these, not to the name: it could resolve to another
 * address by then.
 * @throws EgressError `address_not_allowed`, or the error of the resolver (`ENOTFOUND`, `EAI_AGAIN`)
 */
export async function checkedAddresses(place: Place, rules: EgressRules): Promise<Address[]> {
  checkName(place);
  const found = await addressesOf(place.host, rules);
  if (found.length === 0) throw Object.assign(new Error(`${place.host} has no address`), { code: 'ENOTFOUND' });
  // All of them: a name with one allowed and one forbidden address must not become a loophole.
  for (const { address } of found) checkAddress(place, address, rules);
  await refuseControl(place, found, rules);
  return found;
}

/**
 * Checks a place that an SSH server connects to. Private addresses are allowed: tunnels exist for them. The SSH server
 * resolves the name itself; what it resolves to here is checked too, if it resolves at all.
 * @throws EgressError
 */
export async function checkFarEnd(place: Place, server: { jump_address: string }, rules: EgressRules): Promise<void> {
  checkName(place);
  const found = await addressesOf(place.host, rules).catch(() => []);
  for (const { address } of found) checkAddress(place, address, { ...rules, internal: true });
  const there = found.map((one) => (isLoopback(one.address) ? { ...one, address: server.jump_address } : one));
  await refuseControl(place, there, rules);
}

/** Checks a single address. @throws EgressError */
export function checkAddress(place: Place, address: string, rules: EgressRules): void {
  const kind = addressKind(address);
  if (kind === 'forbidden') throw refusal(place, 'is a forbidden address');
  if (kind === 'public' || rules.internal || isAllowed(place, [address], rules)) return;
  throw refusal(place, 'is not a public address');
}

/** @throws EgressError for the name of a metadata service, whatever it resolves to */
export function checkName(place: Place): void {
  if (isMetadataName(place.host)) throw refusal(place, 'is a forbidden address');
}

/** Whether `allow` contains the place: its host, or ranges that contain all its addresses. */
export function isAllowed({ host, port }: Place, addresses: string[], { allow }: EgressRules): boolean {
  return allow.some((entry) => {
    const cut = entry.lastIndexOf(':');
    const target = entry.slice(0, cut).replaceAll(/[[\]]/g, '');
    if (entry.slice(cut + 1) !== String(port)) return false;
    if (target === plainHost(host)) return true;
    return addresses.length > 0 && addresses.every((address) => isWithin(address, target));
  });
}

/**
 * Rejects the control database: its port on its address. All addresses of this machine count as one. Another database on
 * the same server is allowed if the place names it.
 * @throws EgressError
 */
async function refuseControl(place: Place, addresses: Address[], rules: EgressRules): Promise<void> {
  if (!rules.control) return;
  const url = new URL(rules.control);
  if (place.port !== Number(url.port || 5432)) return;
  const database = decodeURIComponent(url.pathname.slice(1)) || decodeURIComponent(url.username);
  if (place.database !== undefined && place.database !== database) return;
  const own = await addressesOf(url.hostname || 'localhost', rules).catch(() => []);
  const isOwn = ({ address }: Address) =>
    own.some((one) => sameAddress(one.address, address) || (isThisMachine(one.address) && isThisMachine(address)));
  if (addresses.some(isOwn)) throw refusal(place, 'is the database of this service');
}

async function addressesOf(host: string, rules: EgressRules): Promise<Address[]> {
  const literal = literalAddress(host);
  if (literal !== null) return [{ address: literal, family: isIPv6(literal) ? 6 : 4 }];
  return (rules.lookup ?? ((name) => resolve(name, { all: true })))(plainHost(host));
}

const refusal = ({ host, port }: Place, reason: string) =>
  new EgressError('address_not_allowed', `${host}:${port} ${reason}`);
