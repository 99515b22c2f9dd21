import type { AnyDestination, StreamSchema, StreamState, WriteTarget } from '../connectors/contract/connector.ts';
import { dateText, microsOf, timestampText } from '../connectors/cells/timestamp-text.ts';
import type { Db } from '../../db/types.ts';
import type { Claim } from '../runs/claim-stream.ts';
import { DATED } from '../pipeline/custom-run/streams.ts';
import { cursorPath, tableName } from '../pipeline/transfer-plan.ts';
import { tablesOfOthers, windowColumn } from './replace-window.ts';

type StreamRow = Claim['stream'];

const DAY_MICROS = 86_400_000_000;

/** An incremental read that begins `backfill_days` before its cursor. */
export interface LookBack {
  /** Where the read begins. */
  from: StreamState;
  /** Append: the rows from there on give way to those read, so that none is there twice. */
  replace_window: WriteTarget['replace_window'];
}

/**
 * How far back the next incremental read is to look. Null: not at all, since nothing says so, there is no place to look
 * back from, the cursor is no date, or this run has looked back before and gone on. Where rows would be appended twice
 * it is null as well, and `warn` tells.
 */
export async function lookBackOf(
  db: Db,
  how: { claim: Claim; schema: StreamSchema; stream: StreamRow; destination: AnyDestination },
  warn: (code: string, message: string) => void,
): Promise<LookBack | null> {
  const { claim, schema, stream, destination } = how;
  const days = stream.backfill_days ?? claim.connection.backfill_days;
  const cursor = claim.stream.state?.cursor ?? null;
  if (days === 0 || cursor === null || stream.sync_mode !== 'incremental' || claim.run.custom_run_plan_id !== null)
    return null;
  if (cursor !== claim.stream_run.cursor_before || !isDated(schema, stream)) return null;
  const earlier = daysBefore(cursor, days);
  if (earlier === null) return null;
  const from = { cursor: earlier };
  if (stream.destination_sync_mode !== 'append') return { from, replace_window: null };
  const column = destination.replaces_windows ? windowColumn(schema, stream) : null;
  const shared = (await tablesOfOthers(db, claim.connection)).has(tableName(claim.connection, stream));
  if (column !== null && !shared) return { from, replace_window: { column, start: earlier, end: null } };
  warn(
    'look_back_skipped',
    `${stream.name}: backfill_days has no effect, since rows read again would be appended again. Merge by append_dedup`,
  );
  return null;
}

function isDated(schema: StreamSchema, stream: StreamRow): boolean {
  const path = cursorPath(schema, stream);
  const field = path && schema.fields.find((one) => Bun.deepEquals(one.path, path));
  return field != null && DATED.includes(field.type);
}

/** In the form of the cursor: a date, or a moment with or without `T` and zone. Null: it is no such text. */
export function daysBefore(cursor: string, days: number): string | null {
  const micros = microsOf(cursor) - days * DAY_MICROS;
  if (Number.isNaN(micros)) return null;
  if (/^\d{4}-\d\d-\d\d$/.test(cursor)) return dateText(Math.floor(micros / DAY_MICROS));
  const text = timestampText(micros);
  if (cursor.includes('T')) return `${text.slice(0, 10)}T${text.slice(11, -3)}Z`;
  return /[+-]\d\d(:?\d\d)?$/.test(cursor.slice(10)) ? text : text.slice(0, -3);
}

/** A read that looked back and found less than was there before must not move the cursor back. */
export function notBefore(state: StreamState, floor: StreamState | null): StreamState {
  if (!floor?.cursor || !state.cursor) return state;
  return microsOf(state.cursor) < microsOf(floor.cursor) ? floor : state;
}
