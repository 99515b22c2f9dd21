import { ConfigurationError, RateLimitedError, RetryableError } from '../../../contract/errors.ts';
import { serverMessage, statusError } from '../../rest/failures.ts';
import { askedWait } from '../../rest/retry-after.ts';
import type { HttpLocation } from './location-settings.ts';
import { type NetworkContext, repeated, request, textOf } from './remote-request.ts';
import type { FoundFile } from './local-files.ts';

const MOST_REDIRECTS = 5;
const DEFAULT_WAIT_MS = 60_000;
/** What a server says that knows GET only. */
const NO_HEAD = new Set([400, 403, 404, 405, 501]);

type Site = NetworkContext & { config: HttpLocation; now(): Date };

/** What the servers say of the files at the addresses, in the order of the settings. */
export async function findAddresses(ctx: Site): Promise<FoundFile[]> {
  const names = new Set<string>();
  const found: FoundFile[] = [];
  for (const text of ctx.config.urls) {
    const url = new URL(text);
    const plain = url.host + url.pathname;
    // A query may hold a key, so no name shows it.
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
    throw new RetryableError('file_changed', `${name} was changed while it was being read`);
  };
  const ranges = headers.get('accept-ranges') === 'bytes' || headers.has('content-range');
  const { timeout_seconds } = ctx.config;
  return {
    name,
    path: '',
    size: sizeOf(headers),
    modified: Number.isNaN(modified) ? UNKNOWN_TIME : modified,
    remote: { ctx, timeout_seconds, version, ranges, get },
  };
}

/** Of files whose server does not say when they were changed. */
export const UNKNOWN_TIME = 0;

async function about(ctx: Site, url: URL): Promise<Response> {
  const head = await send(ctx, { method: 'HEAD', url, headers: {}, accept: NO_HEAD });
  if (!NO_HEAD.has(head.status)) return head;
  const answer = await send(ctx, { method: 'GET', url, headers: { range: 'bytes=0-0' } });
  await answer.body?.cancel();
  return answer;
}

/** A weak tag does not say that the bytes are the same. */
function versionOf(headers: Headers): string | null {
  const tag = headers.get('etag');
  return tag !== null && !tag.startsWith('W/') ? tag : headers.get('last-modified');
}

/** -1: not said, or said of something packed. */
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

/** Redirects are followed one by one, each address checked anew; credentials stay with the origin they are for. */
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
      if (!next || redirects >= MOST_REDIRECTS) {
        throw new ConfigurationError('redirect_refused', `${url.host} redirects too often, or to no address`);
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
  const wait = askedWait(answer.headers, ctx.now()) ?? DEFAULT_WAIT_MS;
  throw new RateLimitedError(new Date(ctx.now().getTime() + wait), error.message);
}

function credentials({ authentication, token, username, password, headers }: HttpLocation): Record<string, string> {
  if (authentication === 'bearer') return { ...headers, authorization: `Bearer ${token}` };
  if (authentication === 'none') return { ...headers };
  const pair = Buffer.from(`${username}:${password ?? ''}`).toString('base64');
  return { ...headers, authorization: `Basic ${pair}` };
}
