import type { Batch, Cell, ConnectorContext, ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { TRUNCATE } from '../../contract/changes.ts';
import { followLog, openReplication } from './read-log.ts';
import { AGAIN, assertFollowable, assertLogical, changedMeanwhile, shapeOf, type TableShape } from './table-shape.ts';
import { isLsn } from '../connection/lsn.ts';
import { batches } from '../read/read-rows.ts';
import { createPublication, createSlot, dropSlot, setUpError, slotName } from './replication-slots.ts';
import { fullSelect } from '../read/select.ts';
import { PgSession } from '../connection/session.ts';
import { holdTable } from '../read/snapshot.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { literal } from '../connection/sql.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/** A slot waits for the transactions that are open: after so long the user is told what the run waits for. */
const PATIENCE_MS = 10_000;

/**
 * Reads a table by its changes: without a state all of it, out of a snapshot that a new slot begins with; from then on
 * what the log has, up to where it was when the read began. State: `cursor` is the position up to which everything that
 * was committed has been read.
 */
export async function* readChanges(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  const from = request.state?.cursor ?? null;
  const name = slotName(request.reader_id!);
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    await assertLogical(session);
    const shape = await assertFollowable(session, request);
    if (from === null) yield* readSnapshot(ctx, { session, request, shape, name });
    else if (isLsn(from)) yield* followLog(ctx, { session, request, shape, name, from });
    else
      throw new ConfigurationError(
        'invalid_cursor',
        `"${from}" is no position in the log, such as 00000000/0195F1A8. ${AGAIN}`,
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
  /** The table when the read began. */
  shape: TableShape;
  name: string;
}

async function* readSnapshot(ctx: Context, reading: Reading): AsyncGenerator<Batch> {
  const { session, request } = reading;
  const start = await beginSnapshot(ctx, reading).catch((error) => {
    throw setUpError(error);
  });
  // Rows that are there from before and are not in the snapshot are gone, whatever became of the log in between.
  yield { rows: [request.columns.map((): Cell => null)], changes: [TRUNCATE], bytes: 0 };
  yield* batches(session, fullSelect(request, 'rows'));
  yield { rows: [], bytes: 0, state: { cursor: start } };
}

/** Slot and publication of an attempt that did not get to its end are made anew: its snapshot is gone. */
async function beginSnapshot(ctx: Context, { session, request, shape, name }: Reading): Promise<string> {
  const { namespace, name: table } = request.stream;
  await dropSlot(session, name);
  // Before the slot: the log is decoded by the publications of its own time.
  await createPublication(session, name, { namespace: namespace ?? 'public', name: table });
  const replication = await openReplication(ctx);
  const waiting = setTimeout(
    () => ctx.warn('waiting_for_transactions', `${table} is read once the transactions open in the source have ended`),
    PATIENCE_MS,
  );
  try {
    const { start, snapshot } = await createSlot(replication, name);
    await session.query('begin isolation level repeatable read read only');
    await session.query(`set transaction snapshot ${literal(snapshot)}`);
    await holdTable(session, request);
    // Not by the session, which sees the past: a table written anew since looks empty there, and a new column's values
    // are neither in the columns that are read nor in the log that begins here.
    const now = await shapeOf(replication, request);
    if (now.fingerprint !== shape.fingerprint) throw changedMeanwhile(table);
    return start;
  } finally {
    clearTimeout(waiting);
    await replication.close();
  }
}
