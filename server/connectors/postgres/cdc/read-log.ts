import { type Pgoutput, PgoutputPlugin } from 'pg-logical-replication';
import type { Batch, ConnectorContext, ReadRequest, StreamState } from '../../contract/connector.ts';
import { ConfigurationError, ConnectorError, RetryableError } from '../../contract/errors.ts';
import { fillGaps } from './fill-toast-values.ts';
import { ChangeRows } from './change-rows.ts';
import { AGAIN, changedMeanwhile, isAlike, shapeOf, type TableShape } from './table-shape.ts';
import { fullLsn, lsnValue } from '../connection/lsn.ts';
import type { ReplicationStream } from '../connection/replication-stream.ts';
import { findSlot, freeSlot, setUpError } from './replication-slots.ts';
import { PgSession, withSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { identifier, literal } from '../connection/sql.ts';

type Context = ConnectorContext<PostgresSourceConfig>;
type Message = Pgoutput.Message & { bytes: number };

/** A batch ends with the first commit after so much, or in the midst of a transaction after so many times as much. */
const BATCH_ROWS = 10_000;
const BATCH_BYTES = 1024 * 1024;
const OVERSIZE = 2;

interface Reading {
  /** For statements; closed before the log comes, which may take hours. */
  session: PgSession;
  request: ReadRequest;
  /** The table when the read began. */
  shape: TableShape;
  name: string;
  from: string;
}

/**
 * The changes after `from`, up to where the log is now. Batches that end with a commit carry the state after it. The log
 * comes by a session that has never looked at the table: what a server knows of it for a statement stays with the
 * session, and older rows would be decoded as if they were of the table's form of today.
 */
export async function* followLog(ctx: Context, reading: Reading): AsyncGenerator<Batch> {
  const { session, name, from } = reading;
  await assertKept(reading);
  const target = await endOfLog(session);
  await freeSlot(session, name);
  await session.close();
  const replication = await openReplication(ctx);
  try {
    const stream = replication.replicate(startReplication(name, from));
    yield* untilTarget(ctx, { ...reading, stream, target });
    await stream.end();
  } catch (error) {
    throw lostError(replication.translate(error), reading);
  } finally {
    await replication.close();
  }
}

/**
 * Where the log is now. Only what is on the disk is sent, and commits need not have waited for that (synchronous_commit
 * off): a small one of our own that does brings all before it there.
 */
async function endOfLog(session: PgSession): Promise<bigint> {
  await session.query(
    "begin; set local synchronous_commit = 'local'; select pg_logical_emit_message(true, 'data-pipelines', ''); commit",
  );
  const { rows } = await session.query('select pg_current_wal_flush_lsn()');
  return lsnValue(rows[0]![0]!);
}

/** A session that can stream the log. */
export const openReplication = (ctx: Context) =>
  PgSession.open(ctx, { phase: 'run', replication: 'database' }).catch((error) => {
    throw setUpError(error);
  });

/** Values stay the texts that they come as. */
function startReplication(name: string, from: string) {
  const plugin = new PgoutputPlugin({ protoVersion: 1, publicationNames: [name] });
  const decode = (buffer: Buffer): Message => {
    const message = plugin.parse(buffer);
    if (message.tag === 'relation') for (const column of message.columns) column.parser = (text) => text;
    return Object.assign(message, { bytes: buffer.length });
  };
  const options = `proto_version '1', publication_names '${name}'`;
  return { text: `START_REPLICATION SLOT ${identifier(name)} LOGICAL ${from} (${options})`, confirmed: from, decode };
}

/** Acknowledges what the destination has committed. @returns bytes of log behind the slot. */
export async function acknowledge(ctx: Context, name: string, { cursor }: StreamState): Promise<number> {
  if (cursor === null) return 0;
  const replication = await openReplication(ctx);
  try {
    // The first sign of life that goes out says it.
    await replication.replicate(startReplication(name, cursor)).end();
    return (await findSlot(replication, name))?.lag_bytes ?? 0;
  } finally {
    await replication.close();
  }
}

async function* untilTarget(
  ctx: Context,
  reading: Reading & { stream: ReplicationStream<Message>; target: bigint },
): AsyncGenerator<Batch> {
  const { request, stream, target } = reading;
  const collected = new ChangeRows(request);
  const take = async (state?: StreamState): Promise<Batch> => {
    await fillGaps(ctx, request, collected.gaps);
    return { ...collected.take(), state };
  };
  const isFull = (times: number) =>
    collected.rows.length >= BATCH_ROWS * times || collected.bytes >= BATCH_BYTES * times;
  let told: Pgoutput.MessageRelation | null = null;
  let open = false;
  for (;;) {
    const { messages, position } = await stream.next();
    for (const message of messages) {
      collected.bytes += message.bytes;
      if (message.tag === 'begin') open = true;
      else if (message.tag === 'commit') {
        open = false;
        const cursor = message.commitEndLsn!;
        const done = lsnValue(cursor) >= target;
        if (done || isFull(1)) yield await take({ cursor });
        if (done) return;
      } else if (isFull(OVERSIZE)) yield await take();
      // Partitions are told of as well, but changes in the words of the table that they are of.
      if ('relation' in message && message.relation !== told) {
        // The same words come again whenever the server has looked a table up anew.
        const known = reading.shape.columns;
        const isNews = !isAlike(message.relation.columns, told?.columns ?? known);
        told = message.relation;
        if (isNews && !isAlike(told.columns, known)) await assertOlder(ctx, reading);
        collected.tellBy(told);
      }
      collect(collected, message);
    }
    if (open || position === null || lsnValue(position) < target) continue;
    yield await take({ cursor: position });
    return;
  }
}

function collect(collected: ChangeRows, message: Message): void {
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
 * The log tells of the table as it was with each change. Older than what this read knows it by: then what is lacking is
 * asked for. But where the table is not what it was when the read began, what comes may be of its new form.
 * @throws RetryableError `table_changed`
 */
async function assertOlder(ctx: Context, { request, shape }: Reading): Promise<void> {
  const now = await withSession(ctx, { phase: 'run' }, (session) => shapeOf(session, request));
  if (now.fingerprint !== shape.fingerprint) throw changedMeanwhile(request.stream.name);
}

/** @throws ConfigurationError when the log no longer has what comes after `from`. */
async function assertKept({ session, request, name, from }: Reading): Promise<void> {
  const slot = await findSlot(session, name);
  if (!slot) {
    throw new ConfigurationError(
      'replication_slot_missing',
      `The server has no replication slot ${name} any more. ${AGAIN}`,
    );
  }
  if (slot.lost) throw slotLost(name);
  if (lsnValue(slot.confirmed) > lsnValue(from)) {
    throw new ConfigurationError(
      'replication_slot_ahead',
      `The replication slot ${name} was moved on to ${slot.confirmed}: the changes after ${fullLsn(from)} are gone. ${AGAIN}`,
    );
  }
  const { rows } = await session.query(
    `select schemaname, tablename from pg_publication_tables where pubname = ${literal(name)}`,
  );
  const { namespace, name: table } = request.stream;
  if (rows.some(([schema, published]) => schema === namespace && published === table)) return;
  throw new ConfigurationError(
    'publication_missing',
    `The publication ${name} no longer contains the table ${namespace}.${table}: it was recreated or removed. ${AGAIN}`,
  );
}

const slotLost = (name: string) =>
  new ConfigurationError(
    'replication_slot_lost',
    `The server has thrown away what the replication slot ${name} was to keep (max_slot_wal_keep_size). ${AGAIN}`,
  );

function lostError(error: unknown, { name }: Reading): unknown {
  if (!(error instanceof ConnectorError)) return error;
  if (/can no longer (get changes from|access) replication slot/.test(error.message)) return slotLost(name);
  if (/is active for PID/.test(error.message)) {
    return new RetryableError('replication_slot_in_use', `Another process reads the replication slot ${name}`);
  }
  if (/publication .* does not exist/.test(error.message)) {
    return new ConfigurationError('publication_missing', `The publication ${name} is missing. ${AGAIN}`);
  }
  return error;
}
