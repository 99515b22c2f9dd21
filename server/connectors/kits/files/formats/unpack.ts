import { Readable, type Transform } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { DataError } from '../../../contract/errors.ts';
import type { FoundFile } from '../stores/store.ts';
import { ZstdFrames } from './zstd-frames.ts';

/** How a file is compressed as a whole. */
export type Packing = 'gzip' | 'zstd';

const CHUNK_BYTES = 512 << 10;

/** By what its name ends in; null: not compressed. */
export const packingOf = ({ name }: FoundFile): Packing | null =>
  /\.gz$/i.test(name) ? 'gzip' : /\.zst$/i.test(name) ? 'zstd' : null;

/** Matches names with one of these extensions, also of compressed files. */
export const packable = (...extensions: string[]): RegExp =>
  new RegExp(`\\.(${extensions.join('|')})(\\.(gz|zst))?$`, 'i');

/** @throws DataError `invalid_gzip` or `invalid_zstd` */
export async function* unpacked(
  file: FoundFile,
  packing: Packing,
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    if (packing === 'gzip') yield* through(createGunzip({ chunkSize: CHUNK_BYTES }), bytes, signal);
    else yield* unzstd(file, bytes, signal);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!/^(Z_|ZSTD_)/.test(code)) throw error;
    throw corrupt(file, packing, error);
  }
}

const corrupt = ({ name }: FoundFile, packing: Packing, cause?: unknown) =>
  new DataError(`invalid_${packing}`, `${name}: the ${packing} data is corrupt or truncated`, { cause });

/** The decompressor ends without an error when its input is cut off, so the frames are counted beside it. */
async function* unzstd(
  file: FoundFile,
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const frames = new ZstdFrames();
  async function* counted() {
    for await (const chunk of bytes) {
      frames.add(chunk);
      yield chunk;
    }
  }
  yield* through(createZstdDecompress({ chunkSize: CHUNK_BYTES }), counted(), signal);
  if (!frames.whole) throw corrupt(file, 'zstd');
}

/** node:zlib reads all members of a concatenated file; Bun.gunzipSync silently stops after the first. */
async function* through(
  stream: Transform,
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  // The stream reads ahead, and a chunk is valid only until the next one is requested.
  const input = Readable.from(copies(bytes));
  input.on('error', (error) => stream.destroy(error));
  const stop = () => stream.destroy(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    for await (const chunk of input.pipe(stream)) yield chunk;
  } finally {
    signal.removeEventListener('abort', stop);
    stream.destroy();
    input.destroy();
  }
}

async function* copies(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) yield Buffer.from(chunk);
}
