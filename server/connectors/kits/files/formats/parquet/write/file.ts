import { once } from 'node:events';
import { WriteStream } from 'node:fs';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { freeBytes } from '../../../../../../platform/memory/free-bytes.ts';
import type { Bounds } from './bounds.ts';
import { PageCompressor } from './compress.ts';
import { footer, pageHeader, type SchemaColumn, type WrittenColumn, type WrittenGroup } from './metadata.ts';

const MAGIC = Buffer.from('PAR1');

export interface RowGroup {
  rows: number;
  columns: WaitingPage[];
}

/** The page of a column that is not written yet. */
export interface WaitingPage {
  page: Uint8Array<ArrayBuffer>;
  nulls: number;
  bounds: Bounds | null;
  /** Takes the memory of the page back once it is compressed. */
  reuse(page: Uint8Array<ArrayBuffer>): void;
}

/** Writes a Parquet file to a stream. */
export class ParquetFile {
  #at = 0;
  readonly #groups: WrittenGroup[] = [];
  readonly #done: Promise<void>;
  #writing: Promise<void> = Promise.resolve();
  /** Nothing reads what a file has written. Other streams may still send it. */
  readonly #isFile: boolean;

  constructor(
    private readonly stream: Writable,
    private readonly columns: readonly SchemaColumn[],
    /** By column. Other files of the stream use them, too. */
    private readonly compressors: readonly PageCompressor[],
  ) {
    this.#isFile = stream instanceof WriteStream;
    this.#done = finished(stream);
    // Awaited in `end`; until then an unhandled rejection would end the process.
    this.#done.catch(() => {});
  }

  /** Takes the pages over. Resolves once the group before is written, so that two are in memory. */
  async add(group: RowGroup): Promise<void> {
    await this.#writing;
    this.#writing = this.#writeGroup(group);
    this.#writing.catch(() => {});
  }

  /** Resolves when no group is being written any more, even if that failed. */
  async settled(): Promise<void> {
    await this.#writing.catch(() => {});
  }

  async #writeGroup({ rows, columns }: RowGroup): Promise<void> {
    if (this.#at === 0) await this.#write(MAGIC);
    const packed = await Promise.all(columns.map((column, index) => this.#compressed(column, index)));
    const written: WrittenColumn[] = [];
    for (const [index, { bytes, length }] of packed.entries()) {
      const { nulls, bounds } = columns[index]!;
      const at = this.#at;
      const header = pageHeader(rows, length, bytes.length);
      await this.#write(header);
      await this.#write(bytes, this.#isFile ? () => freeBytes(bytes) : undefined);
      const uncompressed = header.length + length;
      written.push({ at, bytes: this.#at - at, uncompressed, nulls, bounds });
    }
    this.#groups.push({ rows, columns: written });
  }

  /** Resolves when the stream has finished. */
  async end(): Promise<void> {
    await this.#writing;
    const metadata = footer(this.columns, this.#groups);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(metadata.length);
    for (const bytes of [metadata, length, MAGIC]) await this.#write(bytes);
    this.stream.end();
    await this.#done;
  }

  /** `length`: of the page, which is gone afterwards. */
  async #compressed({ page, reuse }: WaitingPage, index: number): Promise<{ bytes: Buffer; length: number }> {
    const { length } = page;
    const bytes = await this.compressors[index]!.compress(page);
    reuse(page);
    return { bytes, length };
  }

  async #write(bytes: Uint8Array, onWritten?: () => void): Promise<void> {
    this.#at += bytes.length;
    if (!this.stream.write(bytes, onWritten)) await Promise.race([once(this.stream, 'drain'), this.#done]);
  }
}
