import type { Batch, ConnectorContext, StreamState, WriteCounts, Writer, WriteTarget } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import type { HttpClient } from '../kits/rest/client.ts';
import { selectorOf } from '../kits/rest/selector.ts';
import { ValueGate } from '../cells/value-gate.ts';
import { batchBody, rowEncoder } from './body.ts';
import { ChangesWriter } from './changes-writer.ts';
import { clientOf, urlFor } from './service.ts';
import type { HttpDestinationConfig } from './settings.ts';

type Context = ConnectorContext<HttpDestinationConfig>;
const MAX_WARNINGS = 5;
const JSON_TEXTS = { nul: true, surrogates: true, unread_json: true };

export async function openHttpWriter(ctx: Context, target: WriteTarget): Promise<Writer> {
  if (target.sent) return new ChangesWriter(ctx, target, target.sent);
  if (ctx.config.definition === undefined) return new HttpWriter(ctx, target);
  throw new ConfigurationError(
    'definition_needs_differences',
    'The requests of the destination are for rows that differ. Set full_refresh and append_dedup for the stream',
  );
}

/**
 * Sends rows in batches, in order. The service keeps no state for us, so a repeated attempt cannot ask what has
 * arrived. Batches whose delivery was recorded are not sent again; at most one was sent and not recorded. Each has a
 * key that is the same in every attempt: a hash of the stream run, the checkpoint before it, its number since then, and
 * its body. A service that honors the key accepts a batch once, and different rows never get the same key.
 */
class HttpWriter implements Writer {
  readonly committed = null;
  readonly held = null;
  readonly #client: HttpClient;
  readonly #gate: ValueGate | null;
  readonly #encode: (row: Batch['rows'][number]) => string;
  readonly #rejected: ((response: unknown) => unknown) | null;
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
    this.#client = clientOf(ctx, { interactive: false });
    this.#gate = ValueGate.ofTarget(target, JSON_TEXTS);
    this.#encode = rowEncoder(target.columns);
    this.#rejected = ctx.config.rejected_selector ? selectorOf(ctx.config.rejected_selector) : null;
    this.#checkpoint = target.state_version;
    this.#counts = { ...(target.counts ?? { rows_loaded: 0, rows_updated: 0, rows_deleted: 0, bytes_loaded: 0 }) };
  }

  async write(batch: Batch): Promise<void> {
    const { batch_rows, batch_bytes } = this.ctx.config;
    this.#gate?.takeAll(batch.rows);
    for (const row of batch.rows) {
      const text = this.#encode(row);
      const size = Buffer.byteLength(text) + 1;
      // Batches depend on the rows alone, so that a repeated attempt cuts them at the same places.
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
    this.#gate?.warn((code, message) => this.ctx.warn(code, message));
    return { ...this.#counts };
  }

  async abort(): Promise<void> {
    // What was sent stays sent.
    this.#gate?.warn((code, message) => this.ctx.warn(code, message));
    this.#rows = [];
    this.#bytes = 0;
  }

  async #send(): Promise<void> {
    if (this.#rows.length === 0) return;
    const { config } = this.ctx;
    const { deliveries } = this.target;
    const body = batchBody(config, this.#rows);
    const key = this.#key(body);
    const headers: Record<string, string> = {
      'content-type': config.format === 'jsonl' ? 'application/x-ndjson' : 'application/json',
      accept: 'application/json',
      ...lowercased(config.headers ?? {}),
      'idempotency-key': key,
    };
    const send = async () => {
      const url = urlFor(config, this.target.table);
      const { text } = await this.#client.send({ method: config.method, url, headers, body });
      const found = Math.min(this.#countRejected(text), this.#rows.length);
      await deliveries?.record(key, { rows: this.#rows.length, rejected: found });
      return found;
    };
    const rejected = deliveries?.rejectedOf(key) ?? (await send());
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
      // A response that is not JSON names no rows.
      return 0;
    }
    const count = Array.isArray(found) ? found.length : typeof found === 'number' && found > 0 ? Math.floor(found) : 0;
    if (count > 0) this.#warn(count, Array.isArray(found) ? found[0] : null);
    return count;
  }

  #warn(count: number, first: unknown): void {
    this.#warnings += 1;
    if (this.#warnings > MAX_WARNINGS) return;
    const why =
      first === null ? '' : `. First: ${(typeof first === 'string' ? first : JSON.stringify(first)).slice(0, 300)}`;
    this.ctx.warn('rows_rejected', `The service rejected ${count} of ${this.#rows.length} rows of a batch${why}`);
  }
}

const lowercased = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
