import { lookup as resolve } from 'node:dns/promises';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import ipaddr from 'ipaddr.js';

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

export interface EgressRules {
  /** `host:port` or `cidr:port` that may be called though the address is not public, and over plain http. */
  allow: readonly string[];
  /** Whether plain http is fine for public addresses too. */
  http?: boolean;
}

interface Address {
  address: string;
  family: number;
}

/**
 * A fetch for addresses that users name: https (http where the rules say so), public addresses only, each checked after
 * it was resolved, and then connected to and no other one. No redirects, no proxy, no cookies. Answers stream.
 */
export function guardedFetch(
  rules: EgressRules,
): (input: string | URL | Request, init?: RequestInit) => Promise<Response> {
  return async (input, init) => {
    const request = input instanceof Request ? new Request(input, init) : new Request(String(input), init);
    const url = new URL(request.url);
    const addresses = await checkedAddresses(url, rules);
    const body = request.body === null ? null : Buffer.from(await request.arrayBuffer());
    return send({ url, request, body, addresses });
  };
}

/** What can be told without a look at the network. @throws EgressError */
export function checkUrl(url: URL, rules: EgressRules): void {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new EgressError('unsupported_scheme', `Addresses of the kind ${url.protocol} are not allowed`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new EgressError('invalid_address', 'An address must not carry user name and password');
  }
  const host = hostOf(url);
  const literal = ipaddr.isValid(host) ? [host] : [];
  if (url.protocol === 'http:' && rules.http !== true && !isAllowed(url, literal, rules)) {
    throw new EgressError('unsupported_scheme', `${url.host} is not called over plain http`);
  }
  for (const address of literal) requirePublic(url, address, rules);
}

/** @throws EgressError */
async function checkedAddresses(url: URL, rules: EgressRules): Promise<Address[]> {
  checkUrl(url, rules);
  const host = hostOf(url);
  const literal = ipaddr.isValid(host)
    ? [{ address: host, family: ipaddr.parse(host).kind() === 'ipv6' ? 6 : 4 }]
    : null;
  const found = literal ?? (await resolve(host, { all: true }).catch(() => []));
  if (found.length === 0) throw new EgressError('host_not_found', `The host ${host} cannot be found`);
  // All of them: a name with one public and one private address must not become a way in.
  for (const { address } of found) requirePublic(url, address, rules);
  return found;
}

function requirePublic(url: URL, address: string, rules: EgressRules): void {
  if (isPublic(address) || isAllowed(url, [address], rules)) return;
  throw new EgressError('address_not_allowed', `${url.host} is no public address`);
}

/** Loopback, private, link-local, carrier-grade NAT, multicast, mapped and tunnelled addresses all have other ranges. */
const isPublic = (address: string) => ipaddr.process(address).range() === 'unicast';

function isAllowed(url: URL, addresses: string[], { allow }: EgressRules): boolean {
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return allow.some((entry) => {
    const cut = entry.lastIndexOf(':');
    const target = entry.slice(0, cut).replaceAll(/[[\]]/g, '');
    if (entry.slice(cut + 1) !== port) return false;
    if (target === hostOf(url)) return true;
    return addresses.length > 0 && addresses.every((address) => isWithin(address, target));
  });
}

function isWithin(address: string, target: string): boolean {
  const parsed = ipaddr.process(address);
  if (ipaddr.isValid(target)) return ipaddr.process(target).toString() === parsed.toString();
  if (!ipaddr.isValidCIDR(target)) return false;
  const [network, bits] = ipaddr.parseCIDR(target);
  return network.kind() === parsed.kind() && parsed.match(network, bits);
}

const hostOf = (url: URL) => url.hostname.replaceAll(/[[\]]/g, '');

interface Sending {
  url: URL;
  request: Request;
  body: Buffer | null;
  addresses: Address[];
}

/** node:http and not fetch: that has no way to name the address to connect to, and heeds proxy variables. */
function send({ url, request, body, addresses }: Sending): Promise<Response> {
  const lookup: LookupFunction = (_, options, done) =>
    options.all ? done(null, addresses) : done(null, addresses[0]!.address, addresses[0]!.family);
  // Answers come as they are: nothing here unpacks them.
  const headers: Record<string, string> = { 'accept-encoding': 'identity', ...Object.fromEntries(request.headers) };
  if (body) headers['content-length'] = String(body.length);
  const options = { method: request.method, headers, agent: false as const, lookup, signal: request.signal };
  return new Promise((done, failed) => {
    const call = url.protocol === 'https:' ? requestHttps : requestHttp;
    const sent = call(url, options, (answer) => done(responseOf(answer)));
    sent.once('error', failed);
    sent.end(body ?? undefined);
  });
}

function responseOf(answer: IncomingMessage): Response {
  const headers = new Headers();
  for (const [name, values] of Object.entries(answer.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const status = answer.statusCode ?? 502;
  const empty = status === 204 || status === 205 || status === 304;
  if (empty) answer.resume();
  const body = empty ? null : (Readable.toWeb(answer) as unknown as ReadableStream);
  return new Response(body, { status, statusText: answer.statusMessage, headers });
}
