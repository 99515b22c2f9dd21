import type { AnyDestination, StreamSchema, StreamState, WriteTarget } from '../connectors/contract/connector.ts';
import { dateText, microsOf, timestampText } from '../connectors/cells/timestamp-text.ts';
import type { Db } from '../../db/types.ts';
import type { Claim } from '../runs/claim-stream.ts';
import { DATED } from '../pipeline/custom-run/streams.ts';
import { cursorPath, tableName } from '../pipeline/transfer-plan.ts';
import { tablesOfOthers, windowColumn } from './replace-window.ts';

type StreamRow = Claim['stream'];

const DAY_MICROS = 86_400_000_000;

/** An incremental read that starts `backfill_days` before its cursor. */
export interface LookbackWindow {
  /** Where the read starts. */
  from: StreamState;
  /** Append only: the destination replaces its rows from there on, so that none is duplicated. */
  replace_window: WriteTarget['replace_window'];
}

/**
 * The lookback window of the next incremental read. Null: none is configured, there is no cursor yet, the cursor is not
 * a date, or an earlier attempt of this run has already passed the window. Also null, with a warning, when rows would be
 * appended twice.
 */
export async function lookbackWindow(
  db: Db,
  how: { claim: Claim; schema: StreamSchema; stream: StreamRow; destination: AnyDestination },
  warn: (code: string, message: string) => void,
): Promise<LookbackWindow | null> {
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
    `backfill_days has no effect on ${stream.name}: rows read again would be appended again. Use append_dedup`,
  );
  return null;
}

function isDated(schema: StreamSchema, stream: StreamRow): boolean {
  const path = cursorPath(schema, stream);
  const field = path && schema.fields.find((one) => Bun.deepEquals(one.path, path));
  return field != null && DATED.includes(field.type);
}

/** Keeps the form of the cursor: a date, or a timestamp with or without `T` and zone. Null: not such a text. */
export function daysBefore(cursor: string, days: number): string | null {
  const micros = microsOf(cursor) - days * DAY_MICROS;
  if (Number.isNaN(micros)) return null;
  if (/^\d{4}-\d\d-\d\d$/.test(cursor)) return dateText(Math.floor(micros / DAY_MICROS));
  const text = timestampText(micros);
  if (cursor.includes('T')) return `${text.slice(0, 10)}T${text.slice(11, -3)}Z`;
  return /[+-]\d\d(:?\d\d)?$/.test(cursor.slice(10)) ? text : text.slice(0, -3);
}

/** A read of the lookback window that finds fewer rows than before must not move the cursor back. */
export function notBefore(state: StreamState, floor: StreamState | null): StreamState {
  if (!floor?.cursor || !state.cursor) return state;
  return microsOf(state.cursor) < microsOf(floor.cursor) ? floor : state;
}

/** A lookback window of a destination that went back starts where the destination is, if that is earlier. */
export function earlierOf(from: StreamState, resumed: StreamState | null): StreamState | null {
  if (!resumed?.cursor || !from.cursor) return resumed;
  return microsOf(resumed.cursor) < microsOf(from.cursor) ? resumed : from;
}
