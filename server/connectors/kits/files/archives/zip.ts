import { Readable } from 'node:stream';
import { callbackify } from 'node:util';
import { crc32 } from 'node:zlib';
import { type Entry, fromRandomAccessReaderPromise, RandomAccessReader, type ZipFile } from 'yauzl';
import { ConnectorError, DataError } from '../../../contract/errors.ts';
import { MAX_FILES } from '../stores/local-files.ts';
import type { ByteSource } from './byte-source.ts';

/** Bytes of one request to a remote store. */
const PART_BYTES = 4 << 20;
/** The directory of an archive is read by some 50 bytes at a time. */
const WINDOW_BYTES = 128 << 10;

export interface ZipMember {
  /** Path within the archive. */
  name: string;
  size: number;
  crc32: number;
}

/** An open ZIP file. The caller closes it. */
export interface ZipArchive {
  /** Files without folders, in the order of the archive. */
  members: ZipMember[];
  /** Its decompressed bytes. @throws DataError if they are not what the archive declares */
  read(member: ZipMember, signal: AbortSignal): AsyncGenerator<Uint8Array>;
  close(): Promise<void>;
}

/** @param name of the file, for messages. @throws DataError `invalid_zip`; then the source is closed */
export async function openZip(name: string, source: ByteSource): Promise<ZipArchive> {
  try {
    const options = { lazyEntries: true, autoClose: false };
    const zip = await fromRandomAccessReaderPromise(new Reader(source), source.size, options);
    const entries = await listed(zip);
    return {
      members: [...entries].map(([path, { uncompressedSize: size, crc32: crc }]) => ({ name: path, size, crc32: crc })),
      read: (member, signal) => content(name, { zip, entry: entries.get(member.name) as Entry }, signal),
      close: () => source.close(),
    };
  } catch (error) {
    await source.close();
    throw zipError(error, name);
  }
}

class Reader extends RandomAccessReader {
  #window: { from: number; bytes: Buffer } = { from: 0, bytes: Buffer.alloc(0) };

  constructor(private readonly source: ByteSource) {
    super();
  }

  override _readStreamForRange(start: number, end: number): Readable {
    return Readable.from(partsOf(this.source, start, end));
  }

  override read(...[into, offset, length, position, done]: Parameters<RandomAccessReader['read']>): void {
    const copy = async () => {
      const { from, bytes } = await this.#load(position, length);
      const start = position - from;
      if (bytes.copy(into, offset, start, start + length) < length) throw new Error('unexpected end of file');
    };
    callbackify(copy)(done);
  }

  async #load(position: number, length: number): Promise<{ from: number; bytes: Buffer }> {
    const { from, bytes } = this.#window;
    if (position >= from && position + length <= from + bytes.length) return this.#window;
    const wanted = Math.min(Math.max(length, WINDOW_BYTES), this.source.size - position);
    this.#window = { from: position, bytes: await this.source.read({ from: position, length: wanted }) };
    return this.#window;
  }
}

async function* partsOf(source: ByteSource, start: number, end: number): AsyncGenerator<Buffer> {
  for (let from = start; from < end; from += PART_BYTES) {
    yield await source.read({ from, length: Math.min(PART_BYTES, end - from) });
  }
}

async function listed(zip: ZipFile): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>();
  for await (const entry of zip.eachEntry()) {
    if (entry.fileName.endsWith('/')) continue;
    if (entries.has(entry.fileName)) throw new Error(`the archive has two files named "${entry.fileName}"`);
    entries.set(entry.fileName, entry);
    if (entries.size > MAX_FILES) throw new Error(`the archive has more than ${MAX_FILES} files`);
  }
  return entries;
}

async function* content(
  archive: string,
  { zip, entry }: { zip: ZipFile; entry: Entry },
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const name = `${archive}/${entry.fileName}`;
  if (entry.isEncrypted()) {
    throw new DataError('archive_encrypted', `${name} is encrypted. Provide the archive without a password`);
  }
  if (!entry.canDecodeFileData()) {
    const method = `method ${entry.compressionMethod}`;
    throw new DataError('compression_unsupported', `${name} is compressed by ${method}. Use deflate`);
  }
  let stream: Readable | null = null;
  const stop = () => stream?.destroy(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    stream = await zip.openReadStreamPromise(entry);
    let crc = 0;
    for await (const chunk of stream) {
      crc = crc32(chunk as Uint8Array, crc);
      yield chunk as Uint8Array;
    }
    if (crc !== entry.crc32) throw new Error('the content does not have the declared checksum');
  } catch (error) {
    signal.throwIfAborted();
    throw zipError(error, name);
  } finally {
    signal.removeEventListener('abort', stop);
    stream?.destroy();
  }
}

function zipError(error: unknown, name: string): ConnectorError {
  if (error instanceof ConnectorError) return error;
  const { message } = error as Error;
  return new DataError('invalid_zip', `${name}: the ZIP data is corrupt or truncated (${message})`, { cause: error });
}
