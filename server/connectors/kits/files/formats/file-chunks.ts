import { open } from 'node:fs/promises';
import { DataError } from '../../../contract/errors.ts';
import { fileError } from '../stores/local-files.ts';
import type { FoundFile } from '../stores/store.ts';
import type { FileSourceConfig } from '../settings/files.ts';
import { packingOf, unpacked } from './unpack.ts';

/** Both larger and smaller chunks were slower in measurements. */
const CHUNK_BYTES = 1 << 20;
const LINE_FEED = 10;
/** Without a limit an unclosed quote would buffer the whole file. */
const MAX_RECORD_BYTES = 64 << 20;

export type EncodingLabel = NonNullable<ConstructorParameters<typeof TextDecoder>[0]>;

/**
 * The text of a file, decompressed if its name ends in .gz or .zst, in chunks of about 1 MB that can end anywhere.
 * @throws DataError for broken compression or a wrong encoding, ConfigurationError if the file cannot be opened
 */
export const textChunks = (
  file: FoundFile,
  encoding: FileSourceConfig['encoding'],
  signal: AbortSignal,
): AsyncGenerator<string> => decodedChunks(file, byteChunks(file, signal), { encoding, signal });

/** The text of chunks of bytes. @throws DataError for a wrong encoding */
export async function* decodedChunks(
  file: FoundFile,
  chunks: AsyncIterable<Uint8Array>,
  { encoding, signal }: { encoding: EncodingLabel; signal: AbortSignal },
): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding, { fatal: true });
  const decode = (bytes?: Uint8Array) => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode();
    } catch {
      return null;
    }
  };
  for await (const bytes of chunks) yield decode(bytes) ?? (await wrongEncoding(file, encoding, signal));
  yield decode() ?? (await wrongEncoding(file, encoding, signal));
}

/** @throws DataError with the line: reads the file once more, line by line */
export async function wrongEncoding(file: FoundFile, encoding: EncodingLabel, signal: AbortSignal): Promise<never> {
  const decoder = new TextDecoder(encoding, { fatal: true });
  let line = 1;
  try {
    for await (const bytes of byteChunks(file, signal)) {
      for (let from = 0; from < bytes.length; ) {
        const end = bytes.indexOf(LINE_FEED, from) + 1 || bytes.length;
        decoder.decode(bytes.subarray(from, end), { stream: true });
        if (bytes[end - 1] === LINE_FEED) line += 1;
        from = end;
      }
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  throw new DataError('invalid_encoding', `${file.name}, line ${line}: the text is not valid ${encoding}`);
}

/**
 * Whether to parse the buffer after a chunk. Parsing restarts at the beginning of the record, so a record that spans many
 * chunks is parsed only each time it has grown by half.
 * @param held bytes in the buffer. @param looked bytes at the last attempt. @param ends whether the chunk has line ends
 */
export const isWorthParsing = ({ held, looked, ends }: { held: number; looked: number; ends: boolean }): boolean =>
  held > MAX_RECORD_BYTES || (ends && held >= looked * 1.5);

/** @throws DataError if an unfinished record is longer than 64 MB */
export function checkRecordLength(file: FoundFile, length: number, line: number): void {
  if (length <= MAX_RECORD_BYTES) return;
  const message = `${file.name}, line ${line}: a record is longer than ${MAX_RECORD_BYTES >> 20} MB. Check for an unclosed quote`;
  throw new DataError('record_too_long', message);
}

/** The decompressed bytes of a file. A chunk is valid until the next one is requested. */
export async function* byteChunks(file: FoundFile, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    const { gzip = false, bytes } = file.remote ? await file.remote.open() : { bytes: plain(file, signal) };
    const sent = gzip ? unpacked(file, 'gzip', bytes, signal) : bytes;
    const packing = packingOf(file);
    // A server that announces gzip for a .gz file means the file itself.
    yield* packing && !(gzip && packing === 'gzip') ? unpacked(file, packing, sent, signal) : sent;
  } catch (error) {
    throw fileError(error, file.name);
  }
}

/** Reuses one buffer for all chunks. */
async function* plain(file: FoundFile, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const handle = await open(file.path, 'r');
  try {
    const buffer = new Uint8Array(CHUNK_BYTES);
    while (true) {
      signal.throwIfAborted();
      const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, null);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}
