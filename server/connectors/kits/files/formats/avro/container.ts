import { crc32, inflateRawSync, zstdDecompressSync } from 'node:zlib';
import { uncompress as unsnappy } from 'snappyjs';
import { DataError } from '../../../../contract/errors.ts';
import type { FoundFile } from '../../stores/store.ts';
import { byteChunks } from '../file-chunks.ts';
import { AvroBytes, AvroEndError } from './bytes.ts';
import { type AvroType, parseSchema } from './schema.ts';

const MAGIC = 'Obj\x01';
const MARK_BYTES = 16;
const MAX_HEADER_BYTES = 16 << 20;
/** Writers use some 16 to 64 KB. */
const MAX_BLOCK_BYTES = 256 << 20;
/** Records without bytes could be any number. */
const MAX_BLOCK_RECORDS = 10_000_000;

/** Values of one block of the file. */
export interface AvroBlock {
  count: number;
  /** Of the first value in the file, from 1. */
  first: number;
  bytes: AvroBytes;
}

export interface AvroFile {
  schema: AvroType;
  blocks: AsyncGenerator<AvroBlock>;
  close(): Promise<void>;
}

/** Opens an object container file, which the caller closes. @throws DataError */
export async function openAvro(file: FoundFile, signal: AbortSignal): Promise<AvroFile> {
  const input = new Pieces(byteChunks(file, signal));
  const refuse = (what: string, cause?: unknown) =>
    new DataError('malformed_avro', `${file.name} is not a valid Avro file: ${what}`, { cause });
  try {
    const header = await input.parsed(MAX_HEADER_BYTES, headerOf);
    if (header === null) throw refuse('it is cut off, or not an object container file');
    const { meta, mark } = header;
    const codec = codecOf(file, meta.get('avro.codec')?.toString() ?? 'null');
    const schema = parseSchema(meta.get('avro.schema')?.toString('utf8') ?? '', file.name);
    return { schema, blocks: blocksOf(input, { mark, codec, refuse }), close: input.close };
  } catch (error) {
    await input.close();
    throw error instanceof AvroEndError ? refuse(error.message, error) : error;
  }
}

type Codec = (bytes: Buffer) => Buffer;

function codecOf(file: FoundFile, name: string): Codec {
  const maxOutputLength = MAX_BLOCK_BYTES;
  switch (name) {
    case 'null':
      return (bytes) => bytes;
    case 'deflate':
      return (bytes) => inflateRawSync(bytes, { maxOutputLength });
    case 'zstandard':
      return (bytes) => zstdDecompressSync(bytes, { maxOutputLength });
    case 'snappy':
      return unsnapped;
    default:
      throw new DataError(
        'compression_unsupported',
        `${file.name} is compressed by ${name}. Use deflate, snappy, zstandard or no compression`,
      );
  }
}

/** The checksum of the decompressed bytes follows them. */
function unsnapped(bytes: Buffer): Buffer {
  const plain = Buffer.from(unsnappy(bytes.subarray(0, -4), MAX_BLOCK_BYTES));
  if (crc32(plain) !== bytes.readUInt32BE(bytes.length - 4)) throw new RangeError('the checksum differs');
  return plain;
}

interface Header {
  meta: Map<string, Buffer>;
  mark: Buffer;
}

function headerOf(bytes: AvroBytes): Header {
  if (bytes.take(MAGIC.length).toString('latin1') !== MAGIC) throw new TypeError('magic');
  const meta = new Map<string, Buffer>();
  for (let count = bytes.size(); count !== 0; count = bytes.size()) {
    if (count < 0) bytes.size();
    for (let left = Math.abs(count); left > 0; left--) {
      const key = bytes.take(bytes.size()).toString('utf8');
      meta.set(key, Buffer.from(bytes.take(bytes.size())));
    }
  }
  return { meta, mark: Buffer.from(bytes.take(MARK_BYTES)) };
}

interface Reading {
  mark: Buffer;
  codec: Codec;
  refuse(what: string, cause?: unknown): DataError;
}

async function* blocksOf(input: Pieces, { mark, codec, refuse }: Reading): AsyncGenerator<AvroBlock> {
  let first = 1;
  while (!(await input.ended())) {
    const block = await input.parsed(MAX_BLOCK_BYTES, (bytes) => {
      const count = bytes.size();
      return { count, packed: Buffer.from(bytes.take(bytes.size())), mark: bytes.take(MARK_BYTES) };
    });
    if (block === null) throw refuse(`it is cut off after ${first - 1} records, or a block is larger than 256 MB`);
    if (!block.mark.equals(mark) || block.count < 0 || block.count > MAX_BLOCK_RECORDS) {
      throw refuse(`the block after record ${first - 1} is corrupt`);
    }
    let plain: Buffer;
    try {
      plain = codec(block.packed);
    } catch (error) {
      throw refuse(`the block after record ${first - 1} cannot be decompressed`, error);
    }
    yield { count: block.count, first, bytes: new AvroBytes(plain) };
    first += block.count;
  }
}

/** Collects the pieces of a file until a part of it can be parsed. */
class Pieces {
  readonly #pieces: AsyncGenerator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);

  constructor(pieces: AsyncGenerator<Uint8Array>) {
    this.#pieces = pieces;
  }

  /** Null if the file ends before, or if more than `limit` bytes are needed. What was parsed is valid until then. */
  async parsed<Part>(limit: number, parse: (bytes: AvroBytes) => Part): Promise<Part | null> {
    while (true) {
      const bytes = new AvroBytes(this.#held);
      try {
        const part = parse(bytes);
        this.#held = this.#held.subarray(bytes.at);
        return part;
      } catch (error) {
        if (error instanceof TypeError) return null;
        if (!(error instanceof AvroEndError)) throw error;
      }
      if (this.#held.length > limit || !(await this.#more(this.#held.length))) return null;
    }
  }

  async ended(): Promise<boolean> {
    return this.#held.length === 0 && !(await this.#more(1));
  }

  close = async (): Promise<void> => void (await this.#pieces.return(undefined));

  /** At least `wanted` bytes, so that a large part is not parsed with every piece. */
  async #more(wanted: number): Promise<boolean> {
    const pieces = [this.#held];
    for (let added = 0; added < Math.max(1, wanted); ) {
      const { done, value } = await this.#pieces.next();
      if (done) break;
      pieces.push(Buffer.from(value));
      added += value.length;
    }
    const before = this.#held.length;
    this.#held = Buffer.concat(pieces);
    return this.#held.length > before;
  }
}
