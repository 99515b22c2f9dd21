import { type ParseError, parse } from 'jsonc-parser';
import { ApiError, RequestShapeError } from '../platform/errors.ts';
import { refuseRoundedNumbers } from './exact-numbers.ts';

const MAX_BODY_BYTES = 1024 * 1024;
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const strictUtf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads a request's JSON, by default up to 1 MiB; undefined without a body.
 * @throws ApiError 413; RequestShapeError for invalid JSON and for numbers that JSON.parse would round.
 */
export async function readJson(request: Request, limit?: number): Promise<unknown> {
  const bytes = await readBytes(request, limit);
  if (bytes.byteLength === 0) return undefined;
  const type = request.headers.get('content-type');
  if (type !== null && !JSON_TYPE.test(type)) {
    throw invalid(['header', 'content-type'], 'value_error', 'Content-Type must be application/json');
  }
  let text: string;
  try {
    text = strictUtf8.decode(bytes);
  } catch {
    throw invalid(['body', 0], 'json_invalid', 'The body is not valid UTF-8');
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid(['body', errorOffset(text)], 'json_invalid', 'The body is not valid JSON');
  }
  refuseRoundedNumbers(text);
  return value;
}

/**
 * Reads the whole body, by default up to 1 MiB. A larger Content-Length is rejected before reading, a body without one
 * while reading.
 * @throws ApiError 413 `body_too_large`.
 */
export async function readBytes(request: Request, limit = MAX_BODY_BYTES): Promise<Uint8Array<ArrayBuffer>> {
  const announced = request.headers.get('content-length');
  if (announced !== null && Number(announced) > limit) throw tooLarge(limit);
  try {
    return announced === null ? await readChunks(request, limit) : new Uint8Array(await request.arrayBuffer());
  } catch (error) {
    if (!request.signal.aborted) throw error;
    throw new ApiError(499, 'client_closed_request', 'The client closed the connection before the end of the body');
  }
}

async function readChunks(request: Request, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

const tooLarge = (limit: number) =>
  new ApiError(413, 'body_too_large', `The request body is larger than ${limit} bytes`, { limit_bytes: limit });

const invalid = (loc: (string | number)[], type: string, msg: string) => new RequestShapeError([{ loc, msg, type }]);

/** JSON.parse reports no position. */
function errorOffset(text: string): number {
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: true });
  return errors[0]?.offset ?? text.length;
}
