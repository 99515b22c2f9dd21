import { Agent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as TlsAgent, request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { literalAddress, plainHost } from './addresses.ts';
import {
  type Address,
  checkAddress,
  checkedAddresses,
  checkName,
  EgressError,
  type EgressRules,
  isAllowed,
  type Place,
} from './egress-rules.ts';

/** Connections that are kept for the next request; each was made to an address that was checked. */
const KEPT = { keepAlive: true, maxFreeSockets: 8 };

/**
 * A fetch for addresses that users name: https (http where the rules say so), public addresses only, each checked after
 * it was resolved, and then connected to and no other one. No redirects, no proxy, no cookies. Answers stream.
 *
 * `keepAlive`: connections serve several requests. Only for who tries again when one breaks off: a server may close it
 * in the very moment that it is used again.
 */
export function guardedFetch(
  rules: EgressRules,
  { keepAlive = false } = {},
): (input: string | URL | Request, init?: RequestInit) => Promise<Response> {
  const agents = keepAlive
    ? { http: new Agent(KEPT), https: new TlsAgent(KEPT) }
    : ({ http: false, https: false } as const);
  return async (input, init) => {
    const request = input instanceof Request ? new Request(input, init) : new Request(String(input), init);
    const url = new URL(request.url);
    checkUrl(url, rules);
    const addresses = await checkedAddresses(placeOf(url), rules).catch((error: unknown) => {
      if (error instanceof EgressError) throw error;
      throw new EgressError('host_not_found', `The host ${url.hostname} cannot be found`);
    });
    const body = request.body === null ? null : Buffer.from(await request.arrayBuffer());
    const agent = url.protocol === 'https:' ? agents.https : agents.http;
    return send({ url, request, body, addresses, agent });
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
  const place = placeOf(url);
  checkName(place);
  const literal = literalAddress(place.host);
  if (url.protocol === 'http:' && rules.http !== true && !isAllowed(place, literal === null ? [] : [literal], rules)) {
    throw new EgressError('unsupported_scheme', `${url.host} is not called over plain http`);
  }
  if (literal !== null) checkAddress(place, literal, rules);
}

const placeOf = (url: URL): Place => ({
  host: plainHost(url.hostname),
  port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
});

interface Sending {
  url: URL;
  request: Request;
  body: Buffer | null;
  addresses: Address[];
  /** False: a connection of its own. */
  agent: Agent | TlsAgent | false;
}

/** node:http and not fetch: that has no way to name the address to connect to, and heeds proxy variables. */
function send({ url, request, body, addresses, agent }: Sending): Promise<Response> {
  const lookup: LookupFunction = (_, options, done) =>
    options.all ? done(null, addresses) : done(null, addresses[0]!.address, addresses[0]!.family);
  // Answers come as they are: nothing here unpacks them.
  const headers: Record<string, string> = { 'accept-encoding': 'identity', ...Object.fromEntries(request.headers) };
  if (body) headers['content-length'] = String(body.length);
  const options = { method: request.method, headers, agent, lookup, signal: request.signal };
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
