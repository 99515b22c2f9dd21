import { promisify } from 'node:util';
import { gzip, zstdCompress } from 'node:zlib';

const MIN_BYTES = 1024;
const COMPRESSIBLE =
  /^(?:application\/(?:json|javascript)|text\/(?:html|css|javascript|plain|markdown)|image\/svg\+xml)\b/;
const ENCODERS = { zstd: promisify(zstdCompress), gzip: promisify(gzip) };
type Encoding = keyof typeof ENCODERS;

/** Compresses a response of 1 kB or more with zstd or gzip, whichever the client prefers. Streams stay as they are. */
export async function compressed(request: Request, response: Response): Promise<Response> {
  const encoding = accepted(request.headers.get('accept-encoding'));
  if (encoding === null || response.body === null || request.method === 'HEAD') return response;
  const { headers } = response;
  if (headers.has('content-encoding') || !COMPRESSIBLE.test(headers.get('content-type') ?? '')) return response;
  // A streamed batch would wait for its last call.
  if (request.headers.has('trpc-accept')) return response;
  const body = new Uint8Array(await response.arrayBuffer());
  const whole = { status: response.status, headers };
  headers.append('vary', 'accept-encoding');
  if (body.byteLength < MIN_BYTES) return new Response(body, whole);
  headers.set('content-encoding', encoding);
  headers.delete('content-length');
  return new Response(new Uint8Array(await ENCODERS[encoding](body)), whole);
}

/** The best encoding that the header allows; null for none. */
function accepted(header: string | null): Encoding | null {
  if (header === null) return null;
  const weights = new Map(header.split(',').map((one): [string, number] => [nameOf(one), weightOf(one)]));
  const weight = (encoding: Encoding) => weights.get(encoding) ?? weights.get('*') ?? 0;
  const [best = null] = (['zstd', 'gzip'] as const)
    .filter((encoding) => weight(encoding) > 0)
    .toSorted((a, b) => weight(b) - weight(a));
  return best;
}

const nameOf = (item: string) => item.split(';')[0]!.trim().toLowerCase();
const weightOf = (item: string) => Number(/;\s*q=([\d.]+)/.exec(item)?.[1] ?? 1);
