import type { Batch, ConnectorContext, StreamState, WriteCounts, Writer, WriteTarget } from '../contract/connector.ts';
import type { HttpClient } from '../kits/rest/client.ts';
import { selectorOf } from '../kits/rest/selector.ts';
import { batchBody, rowEncoder } from './body.ts';
import { addressFor, clientOf } from './service.ts';
import type { HttpDestinationConfig } from './settings.ts';

type Context = ConnectorContext<HttpDestinationConfig>;
const MOST_WARNINGS = 5;

export async function openHttpWriter(ctx: Context, target: WriteTarget): Promise<Writer> {
  return new HttpWriter(ctx, target);
}

/**
 * Sends rows in batches, in order. The service keeps no state for us, so nothing tells a repeated attempt what has
 * arrived; instead each batch has a key that is the same in every attempt, made of the stream run, the checkpoint it
 * follows, its number since then, and what is in it: a service that heeds the key takes it once, and other rows never
 * go under a key that was used.
 */
class HttpWriter implements Writer {
  readonly committed = null;
  readonly #client: HttpClient;
  readonly #encode: (row: Batch['rows'][number]) => string;
  readonly #rejected: ((answer: unknown) => unknown) | null;
  readonly #counts: WriteCounts;
  #rows: string[] = [];
  #bytes = 0;
  #checkpoint: number;
  #sequence = 0;
  #warnings = 0;

  constructor(
    private readonly ctx: Context,
    private readonly target: WriteTarget,
  ) {
    this.#client = clientOf(ctx, { hurry: false });
    this.#encode = rowEncoder(target.columns);
    this.#rejected = ctx.config.rejected_selector ? selectorOf(ctx.config.rejected_selector) : null;
    this.#checkpoint = target.state_version;
    this.#counts = { ...(target.counts ?? { rows_loaded: 0, rows_updated: 0, rows_deleted: 0, bytes_loaded: 0 }) };
  }

  async write(batch: Batch): Promise<void> {
    const { batch_rows, batch_bytes } = this.ctx.config;
    for (const row of batch.rows) {
      const text = this.#encode(row);
      const size = Buffer.byteLength(text) + 1;
      // Where batches are cut depends on the rows alone: an attempt that repeats them cuts at the same places.
      if (this.#rows.length >= batch_rows || (this.#rows.length > 0 && this.#bytes + size > batch_bytes))
        await this.#send();
      this.#rows.push(text);
      this.#bytes += size;
    }
  }

  async checkpoint(_state: StreamState): Promise<WriteCounts> {
    await this.#send();
    this.#checkpoint += 1;
    this.#sequence = 0;
    return { ...this.#counts };
  }

  async finish(_state: StreamState | null): Promise<WriteCounts> {
    await this.#send();
    return { ...this.#counts };
  }

  async abort(): Promise<void> {
    this.#rows = [];
    this.#bytes = 0;
  }

  async #send(): Promise<void> {
    if (this.#rows.length === 0) return;
    const { config } = this.ctx;
    const body = batchBody(config, this.#rows);
    const headers: Record<string, string> = {
      'content-type': config.format === 'jsonl' ? 'application/x-ndjson' : 'application/json',
      accept: 'application/json',
      ...lowercased(config.headers),
      'idempotency-key': this.#key(body),
    };
    const answer = await this.#client.send({
      method: config.method,
      url: addressFor(config, this.target.table),
      headers,
      body,
    });
    const rejected = Math.min(this.#countRejected(answer.text), this.#rows.length);
    this.#counts.rows_loaded += this.#rows.length - rejected;
    this.#counts.bytes_loaded += Buffer.byteLength(body);
    this.#counts.rows_rejected = (this.#counts.rows_rejected ?? 0) + rejected;
    this.#sequence += 1;
    [this.#rows, this.#bytes] = [[], 0];
  }

  #key(body: string): string {
    const { stream_run_id } = this.target;
    return Bun.SHA256.hash(JSON.stringify([stream_run_id, this.#checkpoint, this.#sequence, body]), 'hex').slice(0, 40);
  }

  #countRejected(text: string): number {
    if (!this.#rejected) return 0;
    let found: unknown;
    try {
      found = this.#rejected(JSON.parse(text));
    } catch {
      // An answer that is no JSON names no rows.
      return 0;
    }
    const count = Array.isArray(found) ? found.length : typeof found === 'number' && found > 0 ? Math.floor(found) : 0;
    if (count > 0) this.#warn(count, Array.isArray(found) ? found[0] : null);
    return count;
  }

  #warn(count: number, first: unknown): void {
    this.#warnings += 1;
    if (this.#warnings > MOST_WARNINGS) return;
    const why =
      first === null
        ? ''
        : `, the first one: ${(typeof first === 'string' ? first : JSON.stringify(first)).slice(0, 300)}`;
    this.ctx.warn('rows_rejected', `The service rejected ${count} of ${this.#rows.length} rows of a batch${why}`);
  }
}

const lowercased = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
