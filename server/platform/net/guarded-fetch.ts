import type { Agent, IncomingMessage } from 'node:http';
import type { Agent as TlsAgent } from 'node:https';
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

/** Loaded with their first use: they take a process 7 ms, and many never send a request. */
const http = () => require('node:http') as typeof import('node:http');
const https = () => require('node:https') as typeof import('node:https');

/** Connections are kept for further requests. Each leads to an address that was checked. */
const KEPT = { keepAlive: true, maxFreeSockets: 8 };

/**
 * A fetch for addresses that users enter: https only, unless the rules allow http, and public addresses only. The host is
 * resolved and checked once, and the connection goes to exactly that address. No redirects, no proxy, no cookies.
 * Response bodies are streamed.
 *
 * `keepAlive`: connections serve several requests. Only for callers that retry: a server may close a connection at the
 * moment it is reused.
 */
export function guardedFetch(
  rules: EgressRules,
  { keepAlive = false } = {},
): (input: string | URL | Request, init?: RequestInit) => Promise<Response> {
  const agents = keepAlive
    ? { http: new (http().Agent)(KEPT), https: new (https().Agent)(KEPT) }
    : ({ http: false, https: false } as const);
  return async (input, init) => {
    const request = input instanceof Request ? new Request(input, init) : new Request(String(input), init);
    const url = new URL(request.url);
    checkUrl(url, rules);
    const addresses = await checkedAddresses(placeOf(url), rules).catch((error: unknown) => {
      if (error instanceof EgressError) throw error;
      throw new EgressError('host_not_found', `Host ${url.hostname} not found`);
    });
    const body = request.body === null ? null : Buffer.from(await request.arrayBuffer());
    const agent = url.protocol === 'https:' ? agents.https : agents.http;
    return send({ url, request, body, addresses, agent });
  };
}

/** Checks what needs no network access. @throws EgressError */
export function checkUrl(url: URL, rules: EgressRules): void {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new EgressError('unsupported_scheme', `Addresses with ${url.protocol} are not allowed. Use https`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new EgressError('invalid_address', 'An address must not carry user name and password');
  }
  const place = placeOf(url);
  checkName(place);
  const literal = literalAddress(place.host);
  if (url.protocol === 'http:' && rules.http !== true && !isAllowed(place, literal === null ? [] : [literal], rules)) {
    throw new EgressError(
      'unsupported_scheme',
      `${url.host} needs https. An administrator can allow plain http to this address with EGRESS_ALLOW`,
    );
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
  /** False: the request uses a connection of its own. */
  agent: Agent | TlsAgent | false;
}

/** Uses node:http: fetch cannot be given the address to connect to, and it honors proxy variables. */
function send({ url, request, body, addresses, agent }: Sending): Promise<Response> {
  const lookup: LookupFunction = (_, options, done) =>
    options.all ? done(null, addresses) : done(null, addresses[0]!.address, addresses[0]!.family);
  // Responses must not be compressed: nothing here decompresses them.
  const headers: Record<string, string> = { 'accept-encoding': 'identity', ...Object.fromEntries(request.headers) };
  if (body) headers['content-length'] = String(body.length);
  const options = { method: request.method, headers, agent, lookup, signal: request.signal };
  return new Promise((done, failed) => {
    const { request: call } = url.protocol === 'https:' ? https() : http();
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
