import type { DuckDBConnection, DuckDBDataChunk } from '@duckdb/node-api';
import { duckdb } from '../../../duckdb/package.ts';
import type { Cell } from '../../../../contract/connector.ts';
import { CHUNK_ROWS, ChunkTables, FLUSH_BYTES } from './chunk-tables.ts';

/** Collects cells as text in DuckDB tables. */
export class TextTables {
  readonly #chunk: DuckDBDataChunk;
  readonly #tables: ChunkTables;

  constructor(
    connection: DuckDBConnection,
    private readonly width: number,
  ) {
    this.#chunk = duckdb().DuckDBDataChunk.create(Array.from({ length: width }, () => duckdb().VARCHAR));
    this.#tables = new ChunkTables(
      connection,
      Array.from({ length: width }, () => 'VARCHAR'),
    );
  }

  async add(rows: readonly Cell[][]): Promise<void> {
    for (let from = 0; from < rows.length; ) {
      const { to, bytes } = partOf(rows, from);
      const part = rows.slice(from, to);
      // One chunk is reused: its memory is outside of JavaScript's heap, so the collector would be slow to free many.
      this.#chunk.reset();
      this.#chunk.setColumns(Array.from({ length: this.width }, (_, at) => part.map((row) => row[at] ?? null)));
      await this.#tables.append(this.#chunk, bytes);
      from = to;
    }
  }

  end = () => this.#tables.end();
}

/** The next rows that fit into a chunk and a flush; at least one. */
function partOf(rows: readonly Cell[][], from: number): { to: number; bytes: number } {
  let [to, bytes] = [from, 0];
  while (to < rows.length && to - from < CHUNK_ROWS && bytes < FLUSH_BYTES) {
    for (const cell of rows[to]!) bytes += cell?.length ?? 0;
    to += 1;
  }
  return { to, bytes };
}
