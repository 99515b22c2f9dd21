import type { ByteFormat, ReadRequest, StreamState, WriteCounts } from '../connectors/contract/connector.ts';
import { inBytes, inRows, inTime, inWords } from '../pipeline/log-words.ts';
import type { Attempt } from './attempt.ts';

/** From where on the stream is read, and how. @returns to be called at the end of the read */
export function noteRead(attempt: Attempt, request: ReadRequest, format: ByteFormat | null): () => void {
  const { estimated_rows } = attempt.progress;
  const expected = request.state === null && estimated_rows ? `, about ${inRows(estimated_rows)}` : '';
  const lane = format ? `as ${format} bytes` : 'row by row';
  attempt.note('reading', `Reads ${extentOf(attempt, request)}${expected}, ${lane}`);
  const since = performance.now();
  const before = { ...attempt.progress };
  return () => {
    const [rows, bytes] = [
      attempt.progress.rows_read - before.rows_read,
      attempt.progress.bytes_read - before.bytes_read,
    ];
    attempt.note('read', `Read ${inRows(rows)} (${inBytes(bytes)}) in ${inTime(performance.now() - since)}`);
  };
}

/** The changes of a stream are read from one log with those of others. */
export function noteLogRead(attempt: Attempt, state: StreamState | null, streams: number): void {
  const { name } = attempt.claim.stream;
  const others = streams === 1 ? '' : `, together with ${streams - 1} more`;
  const what =
    state === null ? `all rows of ${name}, then its changes` : `the changes of ${name} after ${state.cursor}`;
  attempt.note('reading', `Reads ${what}${others}`);
}

function extentOf({ claim }: Attempt, { state, window }: ReadRequest): string {
  const { name } = claim.stream;
  if (state !== null)
    return state.cursor === null ? `${name} from the last checkpoint` : `${name} after ${state.cursor}`;
  if (window) return `${name} for the days of the window`;
  return `all rows of ${name}`;
}

const DONE = {
  append: 'Appended to',
  overwrite: 'Replaced the rows of',
  append_dedup: 'Merged into',
  update: 'Updated',
  soft_delete: 'Merged into',
} as const;

/** The final commit, which covers all attempts at the stream. */
export function noteCommit(attempt: Attempt, counts: WriteCounts, since: number): void {
  const { stream, stream_run } = attempt.claim;
  const { rows_loaded, rows_updated, rows_deleted, rows_rejected = 0 } = counts;
  const others = Object.entries({ updated: rows_updated, deleted: rows_deleted, rejected: rows_rejected })
    .filter(([, rows]) => rows > 0)
    .map(([what, rows]) => `, ${inWords(rows)} ${what}`);
  const table = stream_run.destination_table ?? stream.name;
  const took = inTime(performance.now() - since);
  const text = `${DONE[stream.destination_sync_mode]} ${table} in ${took}: ${inRows(rows_loaded)} loaded${others.join('')}`;
  attempt.note('committed', text);
}
