import type { Batch, ConnectorContext, LogLag, ReadRequest, StreamState } from '../../contract/connector.ts';
import { CannotContinueError, ConnectorError, RetryableError } from '../../contract/errors.ts';
import { BATCH_BYTES, BATCH_ROWS, OVERSIZE } from '../../kits/log/follow.ts';
import { fillGaps } from './fill-toast-values.ts';
import { lagOf } from './lag.ts';
import { ChangeRows } from './change-rows.ts';
import { changedDuringRead, RESET_CURSOR_HINT, sameColumns, shapeOf, type TableShape } from './table-shape.ts';
import {
  assertSameHistory,
  assertSamePublication,
  identityOf,
  type LogIdentity,
  markStatement,
  readPublication,
} from './log-identity.ts';
import { fullLsn, lsnText, lsnValue } from '../connection/lsn.ts';
import { type LogEvent, type LogMessage, type LoggedRelation, PgoutputDecoder } from './pgoutput.ts';
import type { ReplicationStream } from '../connection/replication-stream.ts';
import { findSlot, freeSlot, isUsable, noteTransactions, setUpError, type Slot } from './replication-slots.ts';
import { PgSession, withSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { identifier, literal } from '../connection/sql.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

interface Reading {
  /** For statements; closed before the log is streamed, which may take hours. */
  session: PgSession;
  request: ReadRequest;
  /** The table at the start of the read. */
  shape: TableShape;
  name: string;
  from: string;
}

/**
 * Reads the changes after `from`, up to the current end of the log. Batches that end with a commit carry the state after
 * it. The log is streamed on a session that has never queried the table: the server caches a table's definition per
 * session, and would decode older rows by today's definition.
 */
export async function* followLog(ctx: Context, reading: Reading): AsyncGenerator<Batch> {
  const { session, name, from } = reading;
  const replication = await openLogSession(ctx);
  try {
    const { target, source } = await openLog(replication, reading);
    await freeSlot(session, name);
    await session.close();
    const stream = replication.replicate(startReplication(name, from));
    yield* untilTarget(ctx, { ...reading, stream, target, source });
    await stream.end();
  } catch (error) {
    throw lostError(replication.translate(error), reading);
  } finally {
    await replication.close();
  }
}

/** Checks that the log continues from the state, and marks the source with this read. */
async function openLog(
  replication: PgSession,
  { session, request, name, from }: Reading,
): Promise<{ target: bigint; source: LogIdentity }> {
  const known = identityOf(request.state);
  const about = { known, name, from, table: request.stream.name };
  const server = await assertSameHistory(replication, about);
  const slot = await findSlot(session, name);
  assertLogAvailable({ slot, name, from });
  const before = await readPublication(session, request, name);
  assertSamePublication(before, about);
  const mark = Math.max(before.mark, known?.mark ?? 0) + 1;
  const target = await endOfLog(session, { name, slot, mark: markStatement(name, mark) });
  // Again, since the log up to its end was decoded by the publication of that time.
  const { rows } = await readPublication(session, request, name);
  assertSamePublication({ rows, mark }, { ...about, known: known ?? { ...server, publication: before.rows, mark } });
  const { system_identifier, timeline } = server;
  return { target, source: { system_identifier, timeline, publication: rows, mark } };
}

/**
 * The current end of the log. The server sends only what it has flushed, and commits may not have waited for the flush
 * (synchronous_commit = off). A small commit that does wait flushes everything before it.
 */
export async function endOfLog(
  session: PgSession,
  { name, slot, mark }: { name: string; slot: Slot | null; mark: string },
): Promise<bigint> {
  if (keepsMuch(slot)) await noteTransactions(session, name);
  await session.query(
    `${NOTE_OPEN_TRANSACTIONS}; begin; set local synchronous_commit = 'local'; select pg_logical_emit_message(true, 'data-pipelines', ''); ${mark}; commit`,
  );
  const { rows } = await session.query('select pg_current_wal_flush_lsn()');
  return lsnValue(rows[0]![0]!);
}

/**
 * A slot lets go of log only up to such a note, which the server otherwise makes every 15 s while it is written to: an
 * idle source would keep what was read until the run after the next one. Not every user may, nor every version can.
 */
const NOTE_OPEN_TRANSACTIONS = `do $$ begin perform pg_catalog.pg_log_standby_snapshot(); exception when others then null; end $$`;

/** Log that the server keeps for a slot and decodes again at each read. 16 MB of one transaction take it 0.1 s. */
const MUCH_BYTES = 16 * 1024 * 1024;
const keepsMuch = (slot: Slot | null) => slot !== null && slot.lag_bytes > MUCH_BYTES;

/** A session that can stream the log. */
export const openLogSession = (ctx: Context) =>
  PgSession.open(ctx, { phase: 'run', replication: 'database' }).catch((error) => {
    throw setUpError(error);
  });

/**
 * @param options.messages those of `pg_logical_emit_message` as well
 * @param options.lazy as that of the decoder
 */
export function startReplication(name: string, from: string, { messages = false, lazy = false } = {}) {
  const decoder = new PgoutputDecoder(lazy);
  const options = `proto_version '1', publication_names '${name}'${messages ? ", messages 'true'" : ''}`;
  return {
    text: `START_REPLICATION SLOT ${identifier(name)} LOGICAL ${from} (${options})`,
    confirmed: from,
    decode: (bytes: Buffer, begin: number, end: number) => decoder.decode(bytes, begin, end),
  };
}

/** Confirms the LSN that the destination has committed. @returns how far the slot lags behind */
export async function confirmLsn(ctx: Context, name: string, { cursor }: StreamState): Promise<LogLag> {
  if (cursor === null) return lagOf(ctx, 0);
  const replication = await openLogSession(ctx);
  try {
    // The first heartbeat carries the LSN.
    await replication.replicate(startReplication(name, cursor)).end();
    const slot = await findSlot(replication, name);
    const lag = lagOf(ctx, slot?.lag_bytes ?? 0);
    if (!keepsConfirmed(slot)) return lag;
    // The end of the run need not wait for it.
    if (isSoonShort(slot, lag)) return { ...lag, shrinks: true };
    return lagOf(ctx, await shorten(ctx, replication, name));
  } finally {
    await replication.close();
  }
}

/** How far a slot lags behind, once the server has let go of what is confirmed. Null: there is none. */
export const slotLag = (ctx: Context, name: string): Promise<LogLag | null> =>
  withSession(ctx, { phase: 'run' }, async (session) => {
    const slot = await findSlot(session, name);
    if (!slot) return null;
    const lag = lagOf(ctx, slot.lag_bytes);
    const isIdle = slot.active_pid === null && isUsable(slot);
    if (!isIdle || !keepsConfirmed(slot) || !isSoonShort(slot, lag)) return lag;
    return lagOf(ctx, await shorten(ctx, session, name));
  });

const keepsConfirmed = (slot: Slot | null): slot is Slot => slot !== null && slot.confirmed_bytes > MUCH_BYTES;

/** Log that a slot lets go of within seconds. An open transaction may hold back more, which would be read in vain each time. */
const SOON_BYTES = 2 * 1024 * 1024 * 1024;

/** What is reported or acted on as lag is what the server cannot let go of, so there nothing is left for later. */
const isSoonShort = (slot: Slot, lag: LogLag) => slot.confirmed_bytes <= SOON_BYTES && !lag.is_high && !lag.is_over;

/** @returns what the slot keeps afterwards, in bytes */
async function shorten(ctx: Context, session: PgSession, name: string): Promise<number> {
  await letGo(ctx, session, name);
  return (await findSlot(session, name))?.lag_bytes ?? 0;
}

/**
 * Moves the position from which the server decodes the log of a slot, which follows the confirmed one only when the
 * server reads past a note of the open transactions: without it, a run after a large transaction has it decoded again.
 * Reading without decoding takes 1 ms per MB.
 */
const letGo = (ctx: Context, session: PgSession, name: string): Promise<unknown> =>
  session
    .query(
      `select pg_catalog.pg_replication_slot_advance(slot_name, confirmed_flush_lsn)
         from pg_replication_slots where slot_name = ${literal(name)}`,
      { slow: true },
    )
    .catch((error: unknown) => {
      ctx.signal.throwIfAborted();
      ctx.log.warn('the log that a slot keeps could not be shortened', { reason: String(error) });
    });

async function* untilTarget(
  ctx: Context,
  reading: Reading & { stream: ReplicationStream<LogMessage>; target: bigint; source: LogIdentity },
): AsyncGenerator<Batch> {
  const { request, stream, target, source } = reading;
  const collected = new ChangeRows(request);
  const take = async (state?: StreamState): Promise<Batch> => {
    await fillGaps(ctx, request, collected.gaps);
    return { ...collected.take(), state };
  };
  const isFull = (times: number) =>
    collected.rows.length >= BATCH_ROWS * times || collected.bytes >= BATCH_BYTES * times;
  let relation: LoggedRelation | null = null;
  let open = false;
  for (;;) {
    const { messages, position } = await stream.next();
    for (const message of messages) {
      collected.bytes += message.bytes;
      if (message.tag === 'begin') open = true;
      else if (message.tag === 'commit') {
        open = false;
        const done = message.endLsn >= target;
        if (done || isFull(1)) yield await take({ cursor: lsnText(message.endLsn), source });
        if (done) return;
      } else if (isFull(OVERSIZE)) yield await take();
      // Partitions are announced too, but their changes refer to the partitioned table.
      if ('relation' in message && message.relation !== relation) {
        // The server repeats an unchanged relation whenever it reloads the table's definition.
        const known = reading.shape.columns;
        const isChanged = !sameColumns(message.relation.columns, relation?.columns ?? known);
        relation = message.relation;
        if (isChanged && !sameColumns(relation.columns, known)) await assertUnchanged(ctx, reading);
        collected.useRelation(relation);
      }
      collect(collected, message);
    }
    if (open || position === null || lsnValue(position) < target) continue;
    yield await take({ cursor: position, source });
    return;
  }
}

export function collect(collected: ChangeRows, message: LogEvent): void {
  switch (message.tag) {
    case 'begin':
      return collected.begin(message);
    case 'insert':
      return collected.insert(message);
    case 'update':
      return collected.update(message);
    case 'delete':
      return collected.delete(message);
    case 'truncate':
      return collected.truncate();
    default:
      return;
  }
}

/**
 * Each change in the log describes the table at that time. An older definition is fine: missing values are read from the
 * table. But if the table has changed since the start of the read, the log may contain its new definition.
 * @throws RetryableError `table_changed`
 */
export async function assertUnchanged(
  ctx: Context,
  { request, shape }: Pick<Reading, 'request' | 'shape'>,
): Promise<void> {
  const now = await withSession(ctx, { phase: 'run' }, (session) => shapeOf(session, request));
  if (now.fingerprint !== shape.fingerprint) throw changedDuringRead(request.stream.name);
}

/** @throws ConfigurationError if the log no longer has the changes after `from`. */
export function assertLogAvailable({ slot, name, from }: { slot: Slot | null } & Pick<Reading, 'name' | 'from'>): void {
  if (slot?.lost) throw slotLost(name);
  if (!isUsable(slot)) {
    throw new CannotContinueError(
      'replication_slot_missing',
      `Replication slot ${name} no longer exists on the server. ${RESET_CURSOR_HINT}`,
    );
  }
  if (lsnValue(slot.confirmed) > lsnValue(from)) {
    throw new CannotContinueError(
      'replication_slot_ahead',
      `Replication slot ${name} was advanced to ${slot.confirmed}, so the changes after ${fullLsn(from)} are lost. ${RESET_CURSOR_HINT}`,
    );
  }
}

const slotLost = (name: string) =>
  new CannotContinueError(
    'replication_slot_lost',
    `The server removed log that replication slot ${name} needs (max_slot_wal_keep_size). ${RESET_CURSOR_HINT}`,
  );

export function lostError(error: unknown, { name }: Pick<Reading, 'name'>): unknown {
  if (!(error instanceof ConnectorError)) return error;
  if (/can no longer (get changes from|access) replication slot/.test(error.message)) return slotLost(name);
  if (/is active for PID/.test(error.message)) {
    return new RetryableError('replication_slot_in_use', `Replication slot ${name} is in use by another process`);
  }
  if (/publication .* does not exist/.test(error.message)) {
    return new CannotContinueError('publication_missing', `Publication ${name} does not exist. ${RESET_CURSOR_HINT}`);
  }
  return error;
}
