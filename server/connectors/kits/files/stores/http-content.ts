import { RetryableError } from '../../../contract/errors.ts';
import { bodyChunks, type NetworkContext } from './http-request.ts';
import type { RemoteContent } from './store.ts';

/** A file behind HTTP, also of S3. */
interface HttpFile {
  name: string;
  ctx: NetworkContext;
  timeout_seconds: number;
  /** Identifies the content that was listed, such as its ETag; null if the server sends nothing that does. */
  version: string | null;
  has_ranges: boolean;
  /** @param range as in HTTP, or null for the whole file. @throws ConnectorError, also if the version differs by now */
  get(range: string | null): Promise<Response>;
}

const MAX_RESUMPTIONS = 3;

export const remoteContent = (file: HttpFile): RemoteContent => ({
  has_ranges: file.has_ranges,
  async open() {
    const answer = await file.get(null);
    const encoding = answer.headers.get('content-encoding')?.trim().toLowerCase() ?? '';
    return { gzip: encoding === 'gzip' || encoding === 'x-gzip', bytes: wholeFile(file, answer) };
  },
  part: (range) => partOf(file, range),
});

/** Resumes after a lost connection where it broke off, provided that the version proves the file to be the same. */
async function* wholeFile(file: HttpFile, first: Response): AsyncGenerator<Uint8Array> {
  let at = 0;
  let answer = first;
  const length = lengthOf(first);
  for (let resumed = 0; ; resumed += 1) {
    try {
      for await (const chunk of bodyChunks(file.ctx, answer, file.timeout_seconds)) {
        at += chunk.length;
        yield chunk;
      }
      if (length === null || at >= length) return;
      throw cutOff(file, at, length);
    } catch (error) {
      file.ctx.signal.throwIfAborted();
      const resumable = file.has_ranges && file.version !== null && at > 0 && error instanceof RetryableError;
      if (!resumable || resumed >= MAX_RESUMPTIONS) throw error;
      answer = await file.get(`bytes=${at}-`);
      if (answer.status !== 206) throw error;
    }
  }
}

async function partOf(file: HttpFile, { from, length }: { from: number; length: number }): Promise<Buffer> {
  const answer = await file.get(`bytes=${from}-${from + length - 1}`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of bodyChunks(file.ctx, answer, file.timeout_seconds)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  if (answer.status === 206 && bytes.length === length) return bytes;
  throw cutOff(file, bytes.length, length);
}

const cutOff = ({ name }: HttpFile, at: number, length: number) =>
  new RetryableError('file_cut_off', `${name}: the server sent ${at} of ${length} bytes`);

/** Null if the server does not report it, or if fetch has decompressed the body: then the two need not agree. */
function lengthOf(answer: Response): number | null {
  const text = answer.headers.get('content-length');
  return text === null || answer.headers.has('content-encoding') ? null : Number(text);
}
