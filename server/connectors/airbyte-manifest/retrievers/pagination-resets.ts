import { ConfigurationError } from '../../contract/errors.ts';
import type { ApiRecord } from '../../kits/rest/records.ts';
import type { PaginationReset } from '../components/stream-components.ts';
import type { StreamCursor } from '../incremental/stream-cursor.ts';

/** Without a cursor a slice is read once more, as with Airbyte. */
const MAX_REPEATS = 1;

/**
 * Decides when the pagination of a slice restarts: when a response asks for it, or after a number of records. With
 * SPLIT_USING_CURSOR the slice then starts at the highest cursor that was seen.
 */
export class PaginationResets {
  #records = 0;
  #highest: string | null = null;
  #repeats = 0;

  constructor(
    private readonly definition: PaginationReset | null | undefined,
    private readonly cursor: StreamCursor | null,
    private readonly name: string,
  ) {}

  /** Whether pagination restarts after these records. */
  observe(records: readonly ApiRecord[]): boolean {
    this.#records += records.length;
    for (const record of this.#splits && this.cursor ? records : []) {
      const normal = this.cursor?.normal(record[this.cursor.field]) ?? null;
      if (normal !== null && (this.#highest === null || normal > this.#highest)) this.#highest = normal;
    }
    const limit = this.definition?.limits?.number_of_records ?? null;
    return limit !== null && this.#records >= limit;
  }

  /** Where the slice starts now. @throws ConfigurationError when that is where it started before */
  restart(start: number | null): number | null {
    this.#records = 0;
    if (!this.#splits || !this.cursor || start === null) {
      this.#repeats += 1;
      if (this.#repeats > MAX_REPEATS) throw this.#endless();
      return start;
    }
    if (this.#highest === null || this.#highest <= this.cursor.textOf(start)) throw this.#endless();
    return this.cursor.position(this.#highest);
  }

  get #splits(): boolean {
    return this.definition?.action === 'SPLIT_USING_CURSOR';
  }

  #endless(): ConfigurationError {
    return new ConfigurationError('endless_pages', `${this.name}: pagination restarts where it started before`);
  }
}
