import { ConfigurationError } from '../../../../contract/errors.ts';
import type { SourceContext } from '../../settings/files.ts';
import type { FoundFile } from '../../stores/store.ts';
import { byteChunks, decodedChunks, type EncodingLabel } from '../file-chunks.ts';

/** An XML declaration is shorter. */
const HEAD_BYTES = 1024;
const DECLARED = /^<\?xml\s[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/;

/**
 * The text of a document, in the encoding that its byte order mark or its declaration names, else in that of the settings.
 * @throws DataError, ConfigurationError as `textChunks`, and for an unknown encoding
 */
export async function* documentText({ config, signal }: SourceContext, file: FoundFile): AsyncGenerator<string> {
  const { head, rest } = await headOf(byteChunks(file, signal));
  const encoding = encodingOf(head) ?? config.encoding;
  yield* decodedChunks(file, rest, { encoding: supported(file, encoding), signal });
}

async function headOf(chunks: AsyncGenerator<Uint8Array>) {
  const held: Uint8Array[] = [];
  let length = 0;
  while (length < HEAD_BYTES) {
    const { value, done } = await chunks.next();
    if (done) break;
    // A chunk is valid until the next one is requested.
    held.push(value.slice());
    length += value.length;
  }
  async function* rest(): AsyncGenerator<Uint8Array> {
    try {
      yield* held;
      yield* chunks;
    } finally {
      await chunks.return(undefined);
    }
  }
  return { head: Buffer.concat(held).subarray(0, HEAD_BYTES), rest: rest() };
}

/** Null if the document does not say. */
function encodingOf(head: Buffer): string | null {
  const start = head.toString('latin1', 0, 3);
  if (start === '\xEF\xBB\xBF') return 'utf-8';
  if (start.startsWith('\xFE\xFF') || start.startsWith('\0<')) return 'utf-16be';
  if (start.startsWith('\xFF\xFE') || start.startsWith('<\0')) return 'utf-16le';
  const declared = DECLARED.exec(head.toString('latin1'))?.[1] ?? null;
  // A declaration that can be read byte by byte is not UTF-16: such documents were text of a program before.
  return declared !== null && /^(utf-?16|ucs-?2|iso-10646-ucs-2)/i.test(declared) ? 'utf-8' : declared;
}

function supported(file: FoundFile, encoding: string): EncodingLabel {
  try {
    return new TextDecoder(encoding as EncodingLabel).encoding as EncodingLabel;
  } catch (cause) {
    const text = `${file.name} declares the encoding "${encoding}", which is not supported. Convert it to UTF-8`;
    throw new ConfigurationError('encoding_unknown', text, { cause });
  }
}
