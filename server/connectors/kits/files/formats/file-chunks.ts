import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { DataError } from '../../../contract/errors.ts';
import { fileError } from '../stores/local-files.ts';
import type { FoundFile, RemoteContent } from '../stores/store.ts';
import type { FileSourceConfig } from '../settings/files.ts';

/** Larger pieces were measured slower; smaller ones too. */
const CHUNK_BYTES = 1 << 20;
/** An open quote would otherwise swallow the whole file. */
const RECORD_LIMIT = 64 << 20;

/**
 * The text of a file, unpacked where its name ends in .gz, in pieces of about a megabyte that end anywhere.
 * @throws DataError for broken gzip or a wrong encoding, ConfigurationError when the file cannot be opened
 */
export async function* textChunks(
  file: FoundFile,
  encoding: FileSourceConfig['encoding'],
  signal: AbortSignal,
): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding, { fatal: true });
  const decode = (bytes?: Uint8Array) => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode();
    } catch (error) {
      throw new DataError('invalid_encoding', `${file.name}: the text is not ${encoding}`, { cause: error });
    }
  };
  for await (const bytes of byteChunks(file, signal)) yield decode(bytes);
  yield decode();
}

/**
 * Whether a record may be there to its end, after a chunk that has line ends or not. A record begins anew with each
 * look, so one that goes over many chunks gets few: `looked` is how much of it there was at the last one.
 */
export const isWorthALook = ({ held, looked, ends }: { held: number; looked: number; ends: boolean }): boolean =>
  held > RECORD_LIMIT || (ends && held >= looked * 1.5);

/** @throws DataError once a record is longer than any sane one. */
export function checkRecordLength(file: FoundFile, length: number, line: number): void {
  if (length <= RECORD_LIMIT) return;
  const message = `${file.name}, line ${line}: a record of more than ${RECORD_LIMIT >> 20} MB; is a quote left open?`;
  throw new DataError('record_too_long', message);
}

/** The bytes of a file, unpacked. Each chunk is good until the next one is asked for. */
export async function* byteChunks(file: FoundFile, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    if (file.remote) yield* remoteChunks(file, file.remote, signal);
    else if (isPacked(file)) yield* gunzipped(createReadStream(file.path), signal);
    else yield* plain(file, signal);
  } catch (error) {
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')) {
      throw new DataError('invalid_gzip', `${file.name}: the gzip data is broken or cut off`, { cause: error });
    }
    throw fileError(error, file.name);
  }
}

const isPacked = ({ name }: FoundFile) => name.endsWith('.gz');

async function* remoteChunks(file: FoundFile, content: RemoteContent, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const { gzip, bytes } = await content.open();
  yield* isPacked(file) || gzip ? gunzipped(Readable.from(bytes), signal) : bytes;
}

/** The buffer is used again: whoever takes a chunk must be done with it before asking for the next one. */
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

/** node:zlib reads every member of a concatenation; Bun.gunzipSync stops silently after the first. */
async function* gunzipped(input: Readable, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES / 2 });
  input.on('error', (error) => gunzip.destroy(error));
  const stop = () => gunzip.destroy(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    for await (const chunk of input.pipe(gunzip)) yield chunk;
  } finally {
    signal.removeEventListener('abort', stop);
    gunzip.destroy();
    input.destroy();
  }
}
