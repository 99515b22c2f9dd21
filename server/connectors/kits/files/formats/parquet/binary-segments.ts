import type { TargetColumn } from '../../../../contract/connector.ts';
import { holdMemory } from '../../../../../platform/memory/held-memory.ts';
import type { Draft } from '../../stores/store.ts';
import type { Segment } from '../format.ts';
import { binaryColumn } from './binary-columns.ts';
import { BinaryRows } from './binary-rows.ts';
import { SEGMENT_BYTES } from './text-segments.ts';
import { PageCompressor } from './write/compress.ts';
import { ParquetFile, type RowGroup } from './write/file.ts';
import type { SchemaColumn } from './write/metadata.ts';
import type { BinaryColumn } from './binary-column.ts';

/**
 * Two row groups, compressed pages and what the compressor takes. While they counted as growth, the worker collected all
 * garbage once per row group, which took a quarter of its processor time; at 64 MB it still did so half as often.
 */
const HELD_BYTES = 96 << 20;

type SizedGroup = RowGroup & { bytes: number };

/** Whether the values of a column can be read in PostgreSQL's binary form. */
export const isBinaryColumn = (column: TargetColumn) => binaryColumn(column) !== null;

/** Cuts rows of PostgreSQL's binary COPY into Parquet files, each of which takes its rows while it is written. */
export async function* binarySegments(
  chunks: AsyncIterable<Uint8Array>,
  columns: TargetColumn[],
): AsyncGenerator<Segment> {
  const readers = columns.map((column) => binaryColumn(column)!);
  const schema = columns.map(({ name }, index) => ({ name, type: readers[index]!.type }));
  const compressors = columns.map(() => new PageCompressor());
  const groups = rowGroups(chunks, schema, readers);
  const release = holdMemory(HELD_BYTES);
  try {
    for (let first = await groups.next(); !first.done; first = await groups.next()) {
      const segment = new BinarySegment({ schema, compressors, groups }, first.value);
      yield segment;
      await segment.taken;
    }
  } finally {
    release();
    await groups.return(undefined);
  }
}

async function* rowGroups(
  chunks: AsyncIterable<Uint8Array>,
  schema: SchemaColumn[],
  readers: BinaryColumn[],
): AsyncGenerator<SizedGroup, undefined> {
  const rows = new BinaryRows(
    readers,
    schema.map(({ name }) => name),
  );
  try {
    for await (const bytes of ended(chunks)) {
      if (bytes) rows.take(bytes);
      for (let next = rows.next(!bytes); next; next = rows.next(!bytes)) yield next;
    }
  } finally {
    rows.close();
  }
}

/** The items, followed by a null. */
async function* ended<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item | null> {
  yield* items;
  yield null;
}

interface Stream {
  schema: SchemaColumn[];
  compressors: PageCompressor[];
  groups: AsyncGenerator<SizedGroup, undefined>;
}

class BinarySegment implements Segment {
  readonly #taken = Promise.withResolvers<void>();
  /** Resolves when the segment takes no more rows. */
  readonly taken = this.#taken.promise;

  constructor(
    private readonly of: Stream,
    private readonly first: SizedGroup,
  ) {}

  async write(draft: Draft): Promise<number> {
    const file = new ParquetFile(draft.stream, this.of.schema, this.of.compressors);
    try {
      await file.add(this.first);
      for (let { bytes } = this.first; bytes < SEGMENT_BYTES; ) {
        const { done, value: group } = await this.of.groups.next();
        if (done) break;
        await file.add(group);
        bytes += group.bytes;
      }
      this.#taken.resolve();
      await file.end();
    } finally {
      await file.settled();
    }
    return draft.keep();
  }

  async close(): Promise<void> {
    this.#taken.resolve();
  }
}
