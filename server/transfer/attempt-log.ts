import type { StoredLogLine } from '../../db/schema/index.ts';
import { inBytes, inRows, inTime, inWords } from '../pipeline/log-words.ts';
import type { Redactor } from '../platform/redaction/redact.ts';
import type { Progress } from '../runs/claim-stream.ts';

const MAX_LINES = 150;
const MAX_LENGTH = 2_000;
/** Each further line comes after twice the time, so that an attempt of a day has some fifteen. */
const FIRST_PROGRESS_MS = 10_000;

/** What one attempt did, in words. Stored with its heartbeats and its end. */
export class AttemptLog {
  #lines: StoredLogLine[] = [];
  #added = 0;
  readonly #began = performance.now();
  #progress_due = FIRST_PROGRESS_MS;

  constructor(
    private readonly attempt: number,
    private readonly redactor: Redactor,
    private readonly now: () => Date,
  ) {}

  /** Those that are not stored yet. */
  get lines(): readonly StoredLogLine[] {
    return this.#lines;
  }

  add(level: StoredLogLine['level'], code: string, text: string): void {
    if (this.#added >= MAX_LINES) return;
    this.#added += 1;
    const isFull = this.#added === MAX_LINES;
    // Redact before truncating: half a secret at the limit would not be recognized.
    const message = isFull
      ? `Further lines of this attempt are not kept`
      : this.redactor.text(text).slice(0, MAX_LENGTH);
    this.#lines.push({
      at: this.now().toISOString(),
      level,
      code: isFull ? 'log_full' : code,
      message,
      attempt: this.attempt,
    });
  }

  /** How far the attempt is, at intervals that double. */
  addProgress({ rows_read, bytes_read, rows_loaded, estimated_rows }: Progress): void {
    const passed = performance.now() - this.#began;
    if (passed < this.#progress_due) return;
    this.#progress_due *= 2;
    const expected = estimated_rows ? ` of about ${inWords(estimated_rows)}` : '';
    const text = `${inRows(rows_read)}${expected} (${inBytes(bytes_read)}) read after ${inTime(passed)}, ${inRows(rows_loaded)} committed`;
    this.add('info', 'progress', text);
  }

  /** The first `count` lines are stored. */
  stored(count: number): void {
    this.#lines = this.#lines.slice(count);
  }
}
