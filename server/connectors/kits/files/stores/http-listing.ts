import { ConfigurationError, RateLimitedError, RetryableError } from '../../../contract/errors.ts';
import { serverMessage, statusError } from '../../rest/failures.ts';
import { requestedWait } from '../../rest/retry-after.ts';
import type { HttpLocation } from '../settings/location.ts';
import { remoteContent } from './http-content.ts';
import { type NetworkContext, repeated, request, textOf } from './http-request.ts';
import { type FoundFile, type SourceStore, UNKNOWN_TIME } from './store.ts';

const MAX_REDIRECTS = 5;
const DEFAULT_WAIT_MS = 60_000;
/** How servers that support only GET respond to HEAD. */
const NO_HEAD = new Set([400, 403, 404, 405, 501]);

type Site = NetworkContext & { config: HttpLocation; now(): Date };

export const httpSourceStore: SourceStore = {
  find: findAddresses,
  placeName({ urls }) {
    const first = urls[0] === undefined ? null : new URL(urls[0]);
    return first ? first.host + first.pathname : '';
  },
};

/** The files at the addresses, in the order of the settings. */
async function findAddresses(ctx: Site): Promise<FoundFile[]> {
  const names = new Set<string>();
  const found: FoundFile[] = [];
  for (const text of ctx.config.urls) {
    const url = new URL(text);
    const plain = url.host + url.pathname;
    // The query may contain a key, so names show only its hash.
    const name = names.has(plain) ? `${plain}?${Bun.hash(url.search).toString(36)}` : plain;
    if (names.has(name)) throw new ConfigurationError('address_repeated', `${name} is listed twice`);
    names.add(name);
    found.push(await foundFile(ctx, url, name));
  }
  return found;
}

async function foundFile(ctx: Site, url: URL, name: string): Promise<FoundFile> {
  const { headers } = await about(ctx, url);
  const modified = Date.parse(headers.get('last-modified') ?? '') * 1000;
  const version = versionOf(headers);
  const get = async (range: string | null) => {
    const answer = await send(ctx, { method: 'GET', url, headers: range === null ? {} : { range } });
    if (version === null || versionOf(answer.headers) === version) return answer;
    await answer.body?.cancel();
    throw new RetryableError('file_changed', `${name} changed while it was being read`);
  };
  const has_ranges = headers.get('accept-ranges') === 'bytes' || headers.has('content-range');
  const { timeout_seconds } = ctx.config;
  return {
    name,
    path: '',
    size: sizeOf(headers),
    modified: Number.isNaN(modified) ? UNKNOWN_TIME : modified,
    remote: remoteContent({ name, ctx, timeout_seconds, version, has_ranges, get }),
  };
}

async function about(ctx: Site, url: URL): Promise<Response> {
  const head = await send(ctx, { method: 'HEAD', url, headers: {}, accept: NO_HEAD });
  if (!NO_HEAD.has(head.status)) return head;
  const answer = await send(ctx, { method: 'GET', url, headers: { range: 'bytes=0-0' } });
  await answer.body?.cancel();
  return answer;
}

/** A weak ETag does not guarantee the same bytes. */
function versionOf(headers: Headers): string | null {
  const tag = headers.get('etag');
  return tag !== null && !tag.startsWith('W/') ? tag : headers.get('last-modified');
}

/** -1 if the size is not reported, or is that of the compressed content. */
function sizeOf(headers: Headers): number {
  const whole = /\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1] ?? headers.get('content-length');
  return whole === null || headers.has('content-encoding') ? -1 : Number(whole);
}

interface Get {
  method: 'GET' | 'HEAD';
  url: URL;
  headers: Record<string, string>;
  accept?: ReadonlySet<number>;
}

/** Follows redirects one by one, so that `ctx.fetch` checks each address. Credentials go to the original origin only. */
async function send(ctx: Site, { method, url, headers, accept }: Get): Promise<Response> {
  const { timeout_seconds } = ctx.config;
  return repeated(ctx, async () => {
    let target = url;
    for (let redirects = 0; ; redirects += 1) {
      const own = target.origin === url.origin ? credentials(ctx.config) : {};
      const all = { 'accept-encoding': 'identity', ...own, ...headers };
      const answer = await request(ctx, { method, url: target, headers: all }, timeout_seconds);
      const location = answer.status >= 300 && answer.status < 400 ? answer.headers.get('location') : null;
      if (location === null) return answer.ok || accept?.has(answer.status) ? answer : refuse(ctx, answer, target);
      await answer.body?.cancel();
      const next = URL.parse(location, target.href);
      if (!next || redirects >= MAX_REDIRECTS) {
        throw new ConfigurationError('redirect_refused', `${url.host} redirects too often or to an invalid address`);
      }
      target = next;
    }
  });
}

async function refuse(ctx: Site, answer: Response, url: URL): Promise<never> {
  const text = await textOf(ctx, answer, ctx.config.timeout_seconds);
  const message = serverMessage(text, answer.headers.get('content-type'));
  const error = statusError(answer.status, { where: url.host + url.pathname, message });
  if (answer.status !== 429) throw error;
  const wait = requestedWait(answer.headers, ctx.now()) ?? DEFAULT_WAIT_MS;
  throw new RateLimitedError(new Date(ctx.now().getTime() + wait), error.message);
}

function credentials({ authentication, token, username, password, headers }: HttpLocation): Record<string, string> {
  if (authentication === 'bearer') return { ...headers, authorization: `Bearer ${token}` };
  if (authentication === 'none') return { ...headers };
  const pair = Buffer.from(`${username}:${password ?? ''}`).toString('base64');
  return { ...headers, authorization: `Basic ${pair}` };
}
