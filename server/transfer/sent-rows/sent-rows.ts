import type {
  AnsweredRow,
  Cell,
  DifferentRow,
  Rejection,
  RowComparer,
  SentRows,
  WriteCounts,
} from '../../connectors/contract/connector.ts';
import { DataError, RetryableError } from '../../connectors/contract/errors.ts';
import {
  countEntries,
  forgetOtherPlaces,
  readSegments,
  recordSent,
  type RejectedRow,
} from '../../runs/delivery/sent-rows.ts';
import { type Attempt, ClaimLost } from '../attempt.ts';
import { compact } from './compact.ts';
import { hashOf, KeyTable, PRESENT, SEEN, UNSURE } from './key-table.ts';
import { type Entry, packEntries, unpackEntries } from './segments.ts';

/** More segments than this are joined at the end of a run. */
const MAX_SEGMENTS = 64;

type Place = { stream_id: string; place: string };

/** What is known of a stream at a place, from the control database. */
export async function loadKeys(db: Attempt['deps']['db'], place: Place) {
  const table = new KeyTable(await countEntries(db, place));
  const totals = { segments: 0, entries: 0 };
  for await (const segment of readSegments(db, place)) {
    totals.segments += 1;
    totals.entries += segment.entries;
    for (const entry of unpackEntries(segment.data)) apply(table, entry, segment.settled);
  }
  return { table, ...totals };
}

function apply(table: KeyTable, entry: Entry, settled: boolean): void {
  const slot = table.slot(entry.key);
  table.clear(slot, PRESENT | UNSURE);
  if (!settled || entry.unsure) table.set(slot, UNSURE | (entry.existed ? PRESENT : 0));
  else if (!entry.gone) {
    table.set(slot, PRESENT);
    table.setContent(slot, entry.content);
  }
}

/** How a row compares with what the destination holds. */
type RowState = 'insert' | 'update' | 'same' | 'repeated' | 'no_key';

/** Marks the key of a row as seen. */
export function compareRow(table: KeyTable, identity: RowComparer, row: readonly Cell[]): RowState {
  const key = identity.key(row);
  if (key === null) return 'no_key';
  const slot = table.slot(key);
  const flags = table.flags(slot);
  if ((flags & SEEN) !== 0) return 'repeated';
  table.set(slot, SEEN);
  if ((flags & PRESENT) === 0) return 'insert';
  if ((flags & UNSURE) !== 0) return 'update';
  const [first, second] = hashOf(identity.content(row));
  const known = table.content(slot);
  return known[0] === first && known[1] === second ? 'same' : 'update';
}

export const isMissing = (flags: number) => (flags & (PRESENT | UNSURE)) !== 0 && (flags & SEEN) === 0;

/** Opens what is known of the rows that a stream has sent. Only for an attempt that holds its claim. */
export async function openSentRows(
  attempt: Attempt,
  identity: RowComparer,
  read: { complete: boolean; counts: WriteCounts },
): Promise<StoredSentRows> {
  const { deps, claim } = attempt;
  const place = { stream_id: claim.stream.id, place: identity.place };
  if (await forgetOtherPlaces(deps.db, place)) {
    attempt.warn(
      'sent_rows_reset',
      'The service, the object or the match key has changed since the last run, so all rows are sent. Rows at the former place stay there',
    );
  }
  const known = await loadKeys(deps.db, place);
  const unsure = known.table.count((flags) => (flags & UNSURE) !== 0);
  if (unsure > 0) {
    attempt.warn(
      'rows_sent_again',
      `An earlier attempt ended before the responses to ${unsure} rows were recorded. They may be sent again`,
    );
  }
  return new StoredSentRows(attempt, identity, { ...read, ...known, unsure });
}

/** See `SentRows`. One stream, one attempt. */
export class StoredSentRows implements SentRows {
  readonly complete: boolean;
  #counts: WriteCounts & { rows_rejected: number };
  readonly #table: KeyTable;
  #segments: number;
  #entries: number;
  readonly #unsure: boolean;
  /** Rows that were announced last, and the segment that says so. */
  #open: { id: number | null; rows: readonly DifferentRow[] } = { id: null, rows: [] };
  #unsent: RejectedRow[] = [];
  #kept: number;

  constructor(
    private readonly attempt: Attempt,
    private readonly identity: RowComparer,
    known: {
      table: KeyTable;
      segments: number;
      entries: number;
      unsure: number;
      complete: boolean;
      counts: WriteCounts;
    },
  ) {
    this.#table = known.table;
    this.#segments = known.segments;
    this.#entries = known.entries;
    this.#unsure = known.unsure > 0;
    this.complete = known.complete;
    this.#counts = { rows_rejected: 0, ...known.counts };
    this.#kept = this.#counts.rows_rejected;
  }

  get counts(): WriteCounts {
    return { ...this.#counts };
  }

  get missing(): number {
    return this.#table.count(isMissing);
  }

  compare(row: readonly Cell[]): DifferentRow | null {
    const found = compareRow(this.#table, this.identity, row);
    if (found === 'same') return null;
    const key = this.identity.key(row);
    if (found === 'insert' || found === 'update') return { operation: found, key: key!, row };
    const [code, message] =
      found === 'no_key'
        ? ['null_key', 'A value of the match key is NULL, so the row cannot be identified']
        : ['duplicate_key', 'Another row of this read has the same match key. The first one counts'];
    this.#unsent.push({ operation: 'insert', key: key ?? 'null', code, message, status: null, answer: null });
    return null;
  }

  async record(answered: readonly AnsweredRow[], next: readonly DifferentRow[], bytes: number): Promise<void> {
    if (answered.length + next.length + this.#unsent.length === 0) return;
    const { attempt, identity } = this;
    const isWhole = answered.length === this.#open.rows.length;
    const refused = answered.filter((one) => one.rejection !== undefined);
    // A settled segment already says that its rows were accepted.
    const corrections = (isWhole ? refused : answered).map((one) => this.#entryAfter(one));
    const segments = [
      ...(corrections.length > 0 ? [segmentOf(corrections, true)] : []),
      ...(next.length > 0
        ? [
            segmentOf(
              next.map((row) => this.#entryBefore(row)),
              false,
            ),
          ]
        : []),
    ];
    const rejected = [...this.#unsent, ...refused.map(({ row, rejection }) => ({ ...rowOf(row), ...rejection! }))];
    const before = this.#counts;
    this.#counts = countsAfter(before, { answered, rejected: rejected.length, bytes });
    Object.assign(attempt.progress, this.#counts);
    const { id } = this.#open;
    const settle = isWhole ? id : null;
    const room = Math.max(0, attempt.claim.connection.max_rejected_rows - this.#kept);
    const shown = rejected.slice(0, room).map((one) => this.#shown(one));
    const progressed = answered.length > refused.length;
    const write = { place: identity.place, counts: this.#counts, progressed, settle, segments, rejected: shown };
    const ids = await recordSent(attempt.deps.db, attempt.claim, write).catch((cause: unknown) => {
      this.#counts = before;
      Object.assign(attempt.progress, before);
      const text = 'The control database did not record which rows were sent, so no further one is sent';
      throw new RetryableError('delivery_not_recorded', text, { cause });
    });
    if (ids === null) throw new ClaimLost('Another worker holds this stream');
    for (const one of answered) if (!one.rejection) this.#accept(one.row);
    this.#open = { id: next.length > 0 ? ids.at(-1)! : null, rows: next };
    this.#unsent = [];
    this.#kept += shown.length;
    this.#segments += segments.length;
    this.#entries += corrections.length + next.length;
    this.#refuseTooMany(rejected[0]);
  }

  async *missingRows(): AsyncGenerator<DifferentRow> {
    const place = { stream_id: this.attempt.claim.stream.id, place: this.identity.place };
    for await (const { data } of readSegments(this.attempt.deps.db, place)) {
      for (const { key } of unpackEntries(data)) {
        const slot = this.#table.slot(key);
        if (!isMissing(this.#table.flags(slot))) continue;
        this.#table.set(slot, SEEN);
        yield { operation: 'delete', key, row: [] };
      }
    }
  }

  /** Joins small segments, and drops what later ones have replaced. Call it at the end of a run. */
  async close(): Promise<void> {
    const { attempt, identity } = this;
    // Chunks of a custom run may write to the same stream at the same time.
    if (attempt.claim.run.custom_run_plan_id !== null) return;
    const live = this.#table.count((flags) => (flags & (PRESENT | UNSURE)) !== 0);
    const isWaste = this.#entries > 1.5 * live + 1000;
    if (!isWaste && !this.#unsure && this.#segments <= MAX_SEGMENTS + live / 10_000) return;
    const kept = await compact(attempt, { place: identity.place, counts: this.#counts, table: this.#table });
    if (!kept) throw new ClaimLost('Another worker holds this stream');
  }

  #accept({ operation, key, row }: DifferentRow): void {
    const slot = this.#table.slot(key);
    this.#table.clear(slot, PRESENT | UNSURE);
    if (operation === 'delete') return;
    this.#table.set(slot, PRESENT);
    this.#table.setContent(slot, this.#contentOf(row));
  }

  #contentOf(row: readonly Cell[]): readonly [number, number] {
    const [first, second] = hashOf(this.identity.content(row));
    return [first, second];
  }

  /** What holds once the row is accepted, and what held before. */
  #entryBefore({ operation, key, row }: DifferentRow): Entry {
    const gone = operation === 'delete';
    const existed = (this.#table.flags(this.#table.slot(key)) & PRESENT) !== 0;
    return { key, gone, existed, unsure: false, content: gone ? [0, 0] : this.#contentOf(row) };
  }

  #entryAfter({ row, rejection }: AnsweredRow): Entry {
    if (!rejection) return this.#entryBefore(row);
    // A rejected row is as it was before.
    const slot = this.#table.slot(row.key);
    const flags = this.#table.flags(slot);
    const [existed, unsure] = [(flags & PRESENT) !== 0, (flags & UNSURE) !== 0];
    return { key: row.key, gone: !existed && !unsure, existed, unsure, content: this.#table.content(slot) };
  }

  #shown(one: RejectedRow): RejectedRow {
    const { redactor } = this.attempt;
    return { ...one, message: redactor.text(one.message), answer: one.answer && redactor.text(one.answer) };
  }

  #refuseTooMany(first: Rejection | undefined): void {
    const { connection, stream } = this.attempt.claim;
    if (this.#counts.rows_rejected <= connection.max_rejected_rows) return;
    throw new DataError(
      'too_many_rejected_rows',
      `More than ${connection.max_rejected_rows} rows of ${stream.name} were rejected. One of them: ${first?.message ?? 'see the rejected rows'}. Correct the rows or the settings, or raise max_rejected_rows`,
    );
  }
}

const segmentOf = (entries: Entry[], settled: boolean) => ({
  settled,
  entries: entries.length,
  data: packEntries(entries),
});

const rowOf = ({ operation, key }: DifferentRow) => ({ operation, key });

function countsAfter(
  before: WriteCounts & { rows_rejected: number },
  news: { answered: readonly AnsweredRow[]; rejected: number; bytes: number },
) {
  const counts = { ...before, rows_rejected: before.rows_rejected + news.rejected };
  counts.bytes_loaded += news.bytes;
  for (const { row, rejection } of news.answered) {
    if (rejection) continue;
    if (row.operation === 'delete') counts.rows_deleted += 1;
    else counts.rows_loaded += 1;
    if (row.operation === 'update') counts.rows_updated += 1;
  }
  return counts;
}
