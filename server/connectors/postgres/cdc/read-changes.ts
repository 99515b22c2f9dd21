import type { Batch, Cell, ConnectorContext, ReadRequest, StreamState } from '../../contract/connector.ts';
import { CannotContinueError } from '../../contract/errors.ts';
import { TRUNCATE } from '../../contract/changes.ts';
import { readPublication, serverPosition } from './log-identity.ts';
import { followLog, openLogSession } from './read-log.ts';
import {
  assertFollowable,
  assertLogical,
  changedDuringRead,
  RESET_CURSOR_HINT,
  shapeOf,
  type TableShape,
} from './table-shape.ts';
import { isLsn } from '../connection/lsn.ts';
import { batches } from '../read/read-rows.ts';
import { snapshotOf } from '../read/read-transaction.ts';
import { createPublication, createSlot, dropSlot, setUpError, slotName } from './replication-slots.ts';
import { fullSelect } from '../read/select.ts';
import { PgSession } from '../connection/session.ts';
import { holdTable } from '../read/snapshot.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { literal } from '../connection/sql.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/** Creating a slot waits for open transactions. After this long, a warning names what the run waits for. */
const WARN_AFTER_MS = 10_000;

/**
 * Reads a table by change data capture. Without a state, it reads the whole table from the snapshot of a new slot. With
 * one, it reads the log up to its end at the start of the read. State: `cursor` is the LSN before which every commit has
 * been read.
 */
export async function* readChanges(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  const from = request.state?.cursor ?? null;
  const name = slotName(request.reader_id!);
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    await assertLogical(session);
    // Before the end of the log is looked up: what is visible now has been logged.
    request.onSnapshot?.(await snapshotOf(session));
    const shape = await assertFollowable(session, request);
    if (from === null) yield* readSnapshot(ctx, { session, request, shape, name });
    else if (isLsn(from)) yield* followLog(ctx, { session, request, shape, name, from });
    else
      throw new CannotContinueError(
        'invalid_cursor',
        `"${from}" is not an LSN such as 00000000/0195F1A8. ${RESET_CURSOR_HINT}`,
      );
  } catch (error) {
    throw session.translate(error);
  } finally {
    await session.close();
  }
}

interface Reading {
  session: PgSession;
  request: ReadRequest;
  /** The table at the start of the read. */
  shape: TableShape;
  name: string;
}

async function* readSnapshot(ctx: Context, reading: Reading): AsyncGenerator<Batch> {
  const { session, request } = reading;
  const start = await beginSnapshot(ctx, reading).catch((error) => {
    throw setUpError(error);
  });
  // Rows of earlier reads that are not in the snapshot were deleted, so the destination starts empty.
  yield { rows: [request.columns.map((): Cell => null)], changes: [TRUNCATE], bytes: 0 };
  yield* batches(session, fullSelect(request, 'rows'));
  yield { rows: [], bytes: 0, state: start };
}

/** Recreates slot and publication after an unfinished attempt, whose snapshot is gone. */
async function beginSnapshot(ctx: Context, { session, request, shape, name }: Reading): Promise<StreamState> {
  const { namespace, name: table } = request.stream;
  await dropSlot(session, name);
  // Before the slot: the log is decoded by the publications that existed when it was written.
  await createPublication(session, name, { namespace: namespace ?? 'public', name: table });
  const { rows: publication, mark } = await readPublication(session, request, name);
  const replication = await openLogSession(ctx);
  const waiting = setTimeout(
    () =>
      ctx.warn(
        'waiting_for_transactions',
        `${table} will be read when the transactions that are open in the source have ended`,
      ),
    WARN_AFTER_MS,
  );
  try {
    const { system_identifier, timeline } = await serverPosition(replication);
    const { start, snapshot } = await createSlot(replication, name);
    await session.query('begin isolation level repeatable read read only');
    await session.query(`set transaction snapshot ${literal(snapshot)}`);
    await holdTable(session, request);
    // Not on the session, which sees the snapshot: a table rewritten since looks empty there, and the values of a new
    // column are neither in the columns read nor in the log that begins here.
    const now = await shapeOf(replication, request);
    if (now.fingerprint !== shape.fingerprint) throw changedDuringRead(table);
    return { cursor: start, source: { system_identifier, timeline, publication, mark } };
  } finally {
    clearTimeout(waiting);
    await replication.close();
  }
}
