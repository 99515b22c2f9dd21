import { rm } from 'node:fs/promises';
import type { DuckDBDataChunk } from '@duckdb/node-api';
import type { TargetColumn } from '../../../../contract/connector.ts';
import { type BinaryColumn, binaryColumn } from './binary-columns.ts';
import { BinaryRows } from './binary-rows.ts';
import { ChunkTables } from './chunk-tables.ts';
import { type DuckDb, literal, openDuckDb } from '../../../duckdb/instance.ts';
import { copyToParquet } from './output.ts';
import type { Segment } from '../format.ts';
import { SEGMENT_BYTES } from './text-segments.ts';
import type { Draft } from '../../stores/store.ts';

/** Whether the values of a column can be read in PostgreSQL's binary form. */
export const isBinaryColumn = (column: TargetColumn) => binaryColumn(column) !== null;

/** Collects rows of PostgreSQL's binary COPY, with one DuckDB engine per Parquet file. */
export async function* binarySegments(
  chunks: AsyncIterable<Uint8Array>,
  columns: TargetColumn[],
): AsyncGenerator<Segment> {
  const readers = columns.map((column) => binaryColumn(column) as BinaryColumn);
  const rows = new BinaryRows(
    readers,
    columns.map(({ name }) => name),
  );
  let open: BinarySegment | null = null;
  try {
    for await (const bytes of ended(chunks)) {
      if (bytes) rows.take(bytes);
      for (let next = rows.next(!bytes); next; next = rows.next(!bytes)) {
        open ??= await BinarySegment.begin(columns, readers);
        await open.add(next);
        if (open.bytes < SEGMENT_BYTES) continue;
        const full: BinarySegment = open;
        open = null;
        yield full;
      }
    }
    const rest = open;
    open = null;
    if (rest) yield rest;
  } finally {
    await open?.close();
  }
}

/** The items, followed by a null. */
async function* ended<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item | null> {
  yield* items;
  yield null;
}

class BinarySegment implements Segment {
  bytes = 0;

  private constructor(
    private readonly columns: TargetColumn[],
    private readonly duck: DuckDb,
    private readonly tables: ChunkTables,
  ) {}

  static async begin(columns: TargetColumn[], readers: BinaryColumn[]): Promise<BinarySegment> {
    const duck = await openDuckDb();
    const types = readers.map(({ type }) => String(type));
    return new BinarySegment(columns, duck, new ChunkTables(duck.connection, types, true));
  }

  async add({ chunk, bytes }: { chunk: DuckDBDataChunk; bytes: number }): Promise<void> {
    await this.tables.append(chunk, bytes);
    this.bytes += bytes;
  }

  async write(draft: Draft): Promise<number> {
    const { columns, duck, tables } = this;
    const values = columns.map(({ type }, at) => (type === 'json' ? `CAST(c${at} AS JSON)` : `c${at}`));
    try {
      await duck.connection.run(`SET temp_directory = ${literal(draft.scratch)}`);
      await copyToParquet(duck, { values, columns, draft, ...(await tables.end()) });
    } finally {
      await this.close();
      await rm(draft.scratch, { recursive: true, force: true });
    }
    return draft.keep();
  }

  #open = true;
  async close(): Promise<void> {
    if (this.#open) this.duck.close();
    this.#open = false;
  }
}
