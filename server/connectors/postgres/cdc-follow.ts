import { type Pgoutput, PgoutputPlugin } from 'pg-logical-replication';
import type { Batch, ConnectorContext, ReadRequest, StreamState } from '../define.ts';
import { ConfigurationError, ConnectorError, RetryableError } from '../errors.ts';
import { ChangeRows, cellOf, type Gap } from './cdc-rows.ts';
import { fullLsn, lsnValue } from './lsn.ts';
import type { ReplicationStream } from './replication-stream.ts';
import { findSlot, freeSlot, setUpError } from './replication-slots.ts';
import { fromClause } from './select.ts';
import { PgSession, withSession } from './session.ts';
import type { PostgresSourceConfig } from './settings.ts';
import { columnList, identifier, literal } from './sql.ts';

type Context = ConnectorContext<PostgresSourceConfig>;
type Message = Pgoutput.Message & { bytes: number };

/** A batch ends with the first commit after so much, or in the midst of a transaction after so many times as much. */
const BATCH_ROWS = 10_000;
const BATCH_BYTES = 1024 * 1024;
const OVERSIZE = 2;

interface Reading {
  /** One for replication. */
  session: PgSession;
  request: ReadRequest;
  name: string;
  from: string;
}

/** The changes after `from`, up to where the log is now. Batches that end with a commit carry the state after it. */
export async function* followLog(ctx: Context, reading: Reading): AsyncGenerator<Batch> {
  const { session, name, from } = reading;
  await assertKept(reading);
  const target = await endOfLog(session);
  await freeSlot(session, name);
  try {
    const stream = session.replicate(startReplication(name, from));
    yield* untilTarget(ctx, { ...reading, stream, target });
    await stream.end();
  } catch (error) {
    throw lostError(session.translate(error), reading);
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
    if (collected.gaps.length > 0) await fillGaps(ctx, request, collected.gaps);
    return { ...collected.take(), state };
  };
  const isFull = (times: number) =>
    collected.rows.length >= BATCH_ROWS * times || collected.bytes >= BATCH_BYTES * times;
  const warned = new Set<string>();
  let open = false;
  for (;;) {
    const { messages, position } = await stream.next();
    for (const message of messages) {
      collected.bytes += message.bytes;
      if (message.tag === 'begin') open = true;
      else if (message.tag === 'relation') warnOfColumns(ctx, { request, message, warned });
      else if (message.tag === 'commit') {
        open = false;
        const cursor = message.commitEndLsn!;
        const done = lsnValue(cursor) >= target;
        if (done || isFull(1)) yield await take({ cursor });
        if (done) return;
      } else if (isFull(OVERSIZE)) yield await take();
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

/** What the log has may be older than the catalog: columns that it lacks are told to be unchanged. New ones are noted. */
function warnOfColumns(
  ctx: Context,
  { request, message, warned }: { request: ReadRequest; message: Pgoutput.MessageRelation; warned: Set<string> },
): void {
  const known = new Set(request.stream.fields.map(({ path }) => path[0]));
  const news = message.columns.map(({ name }) => name).filter((name) => !known.has(name) && !warned.has(name));
  for (const name of news) warned.add(name);
  if (news.length === 0) return;
  ctx.warn('new_columns', `${request.stream.name} has columns that the catalog does not know yet: ${news.join(', ')}`);
}

/** Rows whose key changed and whose large values did not: those are asked for, under the new key. */
const fillGaps = (ctx: Context, request: ReadRequest, gaps: Gap[]) =>
  withSession(ctx, { phase: 'run' }, async (session) => {
    for (const gap of gaps) await fillGap(session, request, gap);
  });

async function fillGap(session: PgSession, request: ReadRequest, { row, columns, key }: Gap): Promise<void> {
  const fields = columns.map((index) => request.columns[index]!.field);
  const where = key.map(({ column, value }) => `${identifier(column)} = ${literal(value)}`).join(' and ');
  const { rows } = await session.query(
    `select ${columnList(fields.map(({ path }) => path[0]!))} from ${fromClause(request)} where ${where}`,
  );
  // Gone again already: what became of it comes later in the log.
  const [found] = rows;
  for (const [place, index] of columns.entries()) {
    row[index] = cellOf(found?.[place], fields[place]!.type === 'boolean');
  }
}

/** What helps when the log does not lead on from the state. */
export const AGAIN = "Reset the stream's cursor: the next run then reads the whole table again";

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
    `The publication ${name} does not have the table ${namespace}.${table} any more, which was made anew or taken out of it. ${AGAIN}`,
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
    return new RetryableError('replication_slot_in_use', `Somebody else reads the replication slot ${name}`);
  }
  if (/publication .* does not exist/.test(error.message)) {
    return new ConfigurationError('publication_missing', `The publication ${name} is missing. ${AGAIN}`);
  }
  return error;
}
