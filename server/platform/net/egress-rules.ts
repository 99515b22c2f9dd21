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

/** The address is not one that the service calls on somebody's behalf. The message names host and reason, no address inside. */
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
  /** `host:port` or `cidr:port` that may be called though the address is not public, and over plain http. */
  allow: readonly string[];
  /** Loopback and private addresses may be called without being named in `allow`. */
  internal?: boolean;
  /** Whether plain http is fine for public addresses too. */
  http?: boolean;
  /** The service's own database, `postgres://host:port/database`: never called. */
  control?: string;
  /** All addresses of a name; the system's resolver unless told otherwise. */
  lookup?(host: string): Promise<Address[]>;
}

export interface Place {
  host: string;
  port: number;
  /** Of a PostgreSQL server: the other databases beside the control database may be called. */
  database?: string;
}

/**
 * The addresses of a place, all of them checked: connect to one of these and to no name, which may mean another one by
 * then.
 * @throws EgressError `address_not_allowed`; what the resolver throws (`ENOTFOUND`, `EAI_AGAIN`).
 */
export async function checkedAddresses(place: Place, rules: EgressRules): Promise<Address[]> {
  checkName(place);
  const found = await addressesOf(place.host, rules);
  if (found.length === 0) throw Object.assign(new Error(`${place.host} has no address`), { code: 'ENOTFOUND' });
  // All of them: a name with one good and one bad address must not become a way in.
  for (const { address } of found) checkAddress(place, address, rules);
  await refuseControl(place, found, rules);
  return found;
}

/**
 * The same for a place that an SSH server connects to: private addresses are what tunnels are for. A name means what
 * the server there makes of it; what it means here is checked too, as far as it means anything.
 * @throws EgressError
 */
export async function checkFarEnd(place: Place, server: { jump_address: string }, rules: EgressRules): Promise<void> {
  checkName(place);
  const found = await addressesOf(place.host, rules).catch(() => []);
  for (const { address } of found) checkAddress(place, address, { ...rules, internal: true });
  const there = found.map((one) => (isLoopback(one.address) ? { ...one, address: server.jump_address } : one));
  await refuseControl(place, there, rules);
}

/** What an address alone says. @throws EgressError */
export function checkAddress(place: Place, address: string, rules: EgressRules): void {
  const kind = addressKind(address);
  if (kind === 'forbidden') throw refusal(place, 'is an address that is never called');
  if (kind === 'public' || rules.internal || isAllowed(place, [address], rules)) return;
  throw refusal(place, 'is no public address');
}

/** @throws EgressError for the name of a metadata service, whatever it resolves to. */
export function checkName(place: Place): void {
  if (isMetadataName(place.host)) throw refusal(place, 'is an address that is never called');
}

/** Whether the operator named the place: by its host, or by ranges that all its addresses are in. */
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
 * Refuses the control database: its port at its address, where this machine is one address however it is spelled. Of
 * the other databases on its server those are fine that the place names.
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
