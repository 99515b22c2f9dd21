import type { Deps } from '../../deps.ts';
import { EgressError } from '../../platform/net/egress-rules.ts';
import { guardedFetch } from '../../platform/net/guarded-fetch.ts';
import { ApiError, badRequest } from '../../platform/errors.ts';

const MAX_REDIRECTS = 5;
const TIMEOUT_MS = 30_000;
const ACCEPTED = 'application/yaml, text/yaml, application/json, text/plain, */*;q=0.5';

interface Wanted {
  url: string;
  /** The parameter that has the address. */
  field: string;
  max_bytes: number;
  etag?: string | null;
}

/**
 * Fetches a text. Each address on the way is checked as any other that users enter, and no credentials are sent.
 * @returns null: it has the given ETag still
 * @throws ApiError 400 with `field`: an address that is not allowed, `document_unreachable`, `document_refused`,
 * `document_too_large`, `document_not_text`
 */
export async function fetchDocument(
  deps: Pick<Deps, 'egress'>,
  wanted: Wanted,
): Promise<{ text: string; etag: string | null } | null> {
  const { field } = wanted;
  const first = URL.parse(wanted.url);
  if (!first) throw badRequest('invalid_address', `Not an address: ${wanted.url}`, { field });
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await followed(deps, { ...wanted, url: first }, signal);
    if (response.status === 304) return null;
    return { text: await textOf(response, wanted), etag: response.headers.get('etag') };
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (error instanceof EgressError) throw badRequest(error.code, error.message, { field });
    const why = signal.aborted ? `no answer within ${TIMEOUT_MS / 1000} s` : 'the connection failed';
    throw badRequest('document_unreachable', `${first.host} cannot be reached: ${why}`, { field });
  }
}

async function followed(
  { egress }: Pick<Deps, 'egress'>,
  { url: first, field, etag }: Omit<Wanted, 'url'> & { url: URL },
  signal: AbortSignal,
): Promise<Response> {
  const send = guardedFetch(egress);
  const headers = { accept: ACCEPTED, ...(etag && { 'if-none-match': etag }) };
  let url = first;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
    const response = await send(url, { headers, signal });
    const { status } = response;
    if (status === 200 || (status === 304 && etag)) return response;
    await response.body?.cancel();
    const next = status >= 300 && status < 400 ? URL.parse(response.headers.get('location') ?? '', url.href) : null;
    if (!next) throw badRequest('document_refused', `${url.host} responded with status ${status}`, { field });
    url = next;
  }
  throw badRequest('document_refused', `${first.host} redirects more than ${MAX_REDIRECTS} times`, { field });
}

async function textOf(response: Response, { field, max_bytes }: Wanted): Promise<string> {
  const tooLarge = () =>
    badRequest('document_too_large', `The file has more than ${max_bytes.toLocaleString('en')} bytes`, { field });
  if (Number(response.headers.get('content-length') ?? 0) > max_bytes) {
    await response.body?.cancel();
    throw tooLarge();
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    // Leaving the loop cancels the rest.
    if (size > max_bytes) throw tooLarge();
    chunks.push(chunk);
  }
  const notText = (message: string) => badRequest('document_not_text', message, { field });
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw notText('The file is not text in UTF-8');
  }
  if (text.includes('\0')) throw notText('The file contains a zero character');
  if (/^\s*<(!doctype|html)\b/i.test(text)) {
    throw notText('The address leads to a web page. Enter the address of the file itself');
  }
  return text;
}
