import type {
  Batch,
  ConnectorContext,
  DifferentRow,
  SentRows,
  WriteCounts,
  Writer,
  WriteTarget,
} from '../contract/connector.ts';
import { ConfigurationError, DataError } from '../contract/errors.ts';
import { ValueGate } from '../cells/value-gate.ts';
import { rowEncoder } from './body.ts';
import { objectFor } from './definition.ts';
import { definitionOf } from './identity.ts';
import { definedOperations, type Operations, plainOperations, type SentItem } from './operations.ts';
import { RowSender } from './send-rows.ts';
import { clientOf } from './service.ts';
import type { HttpDestinationConfig } from './settings.ts';

type Context = ConnectorContext<HttpDestinationConfig>;
const JSON_TEXTS = { nul: true, surrogates: true, unread_json: true };
/** Rows in requests of their own that are sent before their responses are recorded. */
const ROWS_ALONE = 20;

/** @throws ConfigurationError when the definition has no requests for the table */
function operationsOf(config: HttpDestinationConfig, table: string): Operations {
  if (config.definition === undefined) return plainOperations(config, table);
  const object = objectFor(definitionOf(config.definition), table);
  if (object) return definedOperations(config, object, table);
  throw new ConfigurationError(
    'object_not_defined',
    `The requests of the destination have no object for the table "${table}". Add one`,
  );
}

/**
 * Sends the rows that differ from what was sent before. Before rows are sent, the control database records that they are
 * about to be; afterwards, that the service has accepted them. So a crash repeats the rows that were on their way, and
 * loses none.
 */
export class ChangesWriter implements Writer {
  readonly committed = null;
  readonly held = null;
  readonly #gate: ValueGate | null;
  readonly #encode: (row: DifferentRow['row']) => string;
  readonly #encodeKey: (row: DifferentRow['row']) => string;
  readonly #operations: Operations;
  readonly #sender: RowSender;
  readonly #rows: number;
  readonly #key: number[];
  #items: SentItem[] = [];
  #bytes = 0;

  constructor(
    private readonly ctx: Context,
    target: WriteTarget,
    private readonly sent: SentRows,
  ) {
    const { config } = ctx;
    this.#gate = ValueGate.ofTarget(target, JSON_TEXTS);
    this.#encode = rowEncoder(target.columns);
    this.#key = target.primary_key.map((name) => target.columns.findIndex((column) => column.name === name));
    this.#encodeKey = rowEncoder(this.#key.map((index) => target.columns[index]!));
    this.#operations = operationsOf(config, target.table);
    this.#sender = new RowSender(clientOf(ctx, { interactive: false }), this.#operations, target.stream_run_id);
    const { insert, update } = this.#operations;
    this.#rows = Math.max(insert.rows, update.rows, ROWS_ALONE);
    if (config.definition === undefined) this.#rows = insert.rows;
  }

  async write(batch: Batch): Promise<void> {
    for (const given of batch.rows) {
      const different = this.sent.compare(given);
      if (!different) continue;
      const row = [...given];
      this.#gate?.takeAll([row]);
      const key = this.#encodeKey(this.#key.map((index) => row[index] ?? null));
      await this.#add({ row: different, text: this.#encode(row), key });
    }
  }

  /** A full read has no checkpoints. */
  async checkpoint(): Promise<WriteCounts> {
    await this.#flush();
    return this.sent.counts;
  }

  async finish(): Promise<WriteCounts> {
    await this.#flush();
    if (this.sent.complete) await this.#remove();
    this.#gate?.warn((code, message) => this.ctx.warn(code, message));
    const { rows_rejected = 0 } = this.sent.counts;
    if (rows_rejected > 0) {
      this.ctx.warn(
        'rows_rejected',
        `${rows_rejected} rows were rejected. They are listed with the stream run, and the next run sends them again`,
      );
    }
    return this.sent.counts;
  }

  async abort(): Promise<void> {
    this.#items = [];
  }

  async #add(item: SentItem): Promise<void> {
    const size = Buffer.byteLength(item.text) + 1;
    const isFull = this.#items.length > 0 && this.#bytes + size > this.ctx.config.batch_bytes;
    if (this.#items.length >= this.#rows || isFull) await this.#flush();
    this.#items.push(item);
    this.#bytes += size;
  }

  /** Rows that the source no longer has. */
  async #remove(): Promise<void> {
    const { missing } = this.sent;
    if (missing === 0) return;
    const { max_deletes } = this.ctx.config;
    if (!this.#operations.remove) {
      const text = `${missing} rows that the source no longer has stay in the service, since the destination has no request for deletes`;
      this.ctx.warn('rows_not_deleted', text);
      return;
    }
    if (missing > max_deletes) {
      const text = `The run would delete ${missing} rows, and the destination allows ${max_deletes}. Check the source and its filters, or raise max_deletes. No row was deleted`;
      throw new DataError('too_many_deletes', text);
    }
    for await (const row of this.sent.missingRows()) {
      const key = this.#encodeKey(JSON.parse(row.key) as string[]);
      await this.#add({ row, text: key, key });
    }
    await this.#flush();
  }

  async #flush(): Promise<void> {
    const items = this.#items;
    [this.#items, this.#bytes] = [[], 0];
    await this.sent.record(
      [],
      items.map(({ row }) => row),
      0,
    );
    if (items.length === 0) return;
    this.#sender.bytes = 0;
    const { answered, error } = await this.#sender.send(items);
    await this.sent.record(answered, [], this.#sender.bytes);
    if (error) throw error;
  }
}
