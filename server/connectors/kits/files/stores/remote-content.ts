import { RetryableError } from '../../../contract/errors.ts';
import { bodyChunks, type NetworkContext } from './remote-request.ts';

/** What a file elsewhere is read by. */
export interface RemoteContent {
  ctx: NetworkContext;
  timeout_seconds: number;
  /** What the server has to say of this version; null: it cannot be told from another. */
  version: string | null;
  /** Whether parts of the file can be had. */
  ranges: boolean;
  /** @param range as in HTTP, or null for the whole. @throws ConnectorError, also when the file is another one by now */
  get(range: string | null): Promise<Response>;
}

interface Named {
  name: string;
  size: number;
}

const RESUMPTIONS = 3;

/** What the file is packed in beside what its name says, and its bytes. */
export async function openRemote(file: Named, content: RemoteContent) {
  const answer = await content.get(null);
  const encoding = answer.headers.get('content-encoding')?.trim().toLowerCase() ?? '';
  return { gzip: encoding === 'gzip' || encoding === 'x-gzip', bytes: remoteBytes(file, content, answer) };
}

/** A lost connection is taken up again where it broke off, as long as the file is provably the same. */
async function* remoteBytes(file: Named, content: RemoteContent, first: Response): AsyncGenerator<Uint8Array> {
  let at = 0;
  let answer = first;
  const length = lengthOf(first);
  for (let resumed = 0; ; resumed += 1) {
    try {
      for await (const chunk of bodyChunks(content.ctx, answer, content.timeout_seconds)) {
        at += chunk.length;
        yield chunk;
      }
      if (length === null || at >= length) return;
      throw cutOff(file, at, length);
    } catch (error) {
      content.ctx.signal.throwIfAborted();
      const resumable = content.ranges && content.version !== null && at > 0 && isPassing(error);
      if (!resumable || resumed >= RESUMPTIONS) throw error;
      answer = await content.get(`bytes=${at}-`);
      if (answer.status !== 206) throw error;
    }
  }
}

const isPassing = (error: unknown) => error instanceof RetryableError;

const cutOff = (file: Named, at: number, length: number) =>
  new RetryableError('file_cut_off', `${file.name}: the server sent ${at} bytes of ${length}`);

/** Bytes of the file from `from` on, at most `length`. */
export async function remotePart(
  file: Named,
  content: RemoteContent,
  { from, length }: { from: number; length: number },
) {
  const answer = await content.get(`bytes=${from}-${from + length - 1}`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of bodyChunks(content.ctx, answer, content.timeout_seconds)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  if (answer.status === 206 && bytes.length === length) return bytes;
  throw cutOff(file, bytes.length, length);
}

/** Null when the server does not say, or when fetch has unpacked the body, so that the two need not agree. */
function lengthOf(answer: Response): number | null {
  const text = answer.headers.get('content-length');
  return text === null || answer.headers.has('content-encoding') ? null : Number(text);
}
