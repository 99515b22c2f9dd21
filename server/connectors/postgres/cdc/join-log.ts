import type { Batch, ConnectorContext, ReadRequest, ReplicatedBatch, StreamState } from '../../contract/connector.ts';
import { ofStream, StreamsFailed } from '../../contract/replication.ts';
import { PgSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { literal } from '../connection/sql.ts';
import { batches } from '../read/read-rows.ts';
import { fullSelect } from '../read/select.ts';
import { BEGIN } from '../read/shared-snapshot.ts';
import { holdTable } from '../read/snapshot.ts';
import { isPlaced, type Member } from './log-members.ts';
import { addToPublication } from './shared-publication.ts';
import { type LogIdentity, publicationOf, publicationRows, serverPosition } from './log-identity.ts';
import { followLog, openLogSession } from './read-log.ts';
import { createSlot, dropSlot, findSlot, freeSlot, isUsable, setUpError, slotName } from './replication-slots.ts';
import { changedDuringRead, shapeOf } from './table-shape.ts';
import { truncated } from '../../contract/cells.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/** Creating a slot waits for open transactions. After this long, a warning names what the run waits for. */
const WARN_AFTER_MS = 10_000;

/**
 * Brings streams into the log that are not in it: reads tables in full, or the rest of the log of a slot that a stream
 * had alone. From the start position on, the shared slot has every change of them.
 */
export async function* joinLog(
  ctx: Context,
  { name, members }: { name: string; members: readonly Member[] },
): AsyncGenerator<ReplicatedBatch> {
  const joining = members.filter(({ place }) => place !== 'log');
  if (joining.length === 0) return;
  const tables = joining.filter(({ place }) => place === 'table');
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    const { start, source } = await openSnapshot(ctx, { session, name, joining, tables });
    for (const member of joining.filter(({ place }) => place === 'own_slot')) {
      yield* readOwnSlot(ctx, { member, members, source: source(member) });
    }
    for (const { at, request } of tables) yield* partsOf(at, wholeTable(session, request));
    for (const member of tables) hasJoined(member, start, source(member));
    yield { parts: [], states: members.map(({ state }) => state), complete: true };
  } catch (error) {
    throw error instanceof StreamsFailed ? error : session.translate(error);
  } finally {
    await session.close();
  }
}

async function* wholeTable(session: PgSession, request: ReadRequest): AsyncGenerator<Batch> {
  // Rows of earlier reads that are not in the snapshot were deleted, so the destination starts empty.
  yield truncated(request.columns.length);
  yield* batches(session, fullSelect(request, 'rows'));
}

/**
 * Publishes the tables, and opens a snapshot of them at a position of the log. Without a shared slot, that is
 * where the slot starts; with one, which is behind, a temporary slot finds the position. Either waits for transactions
 * that were open when the tables were published, because their changes are not in the log.
 */
export async function openSnapshot(
  ctx: Context,
  { session, name, joining, tables }: { session: PgSession; name: string; joining: Member[]; tables: Member[] },
): Promise<{ start: string; source(member: Member): LogIdentity }> {
  const slot = await findSlot(session, name);
  const temporary = isUsable(slot);
  if (slot && !temporary) await dropSlot(session, name);
  // Before the slot: the log is decoded by the publications that existed when it was written.
  await addToPublication(session, name, joining);
  const publication = await publicationRows(session, name);
  const wanted = temporary ? `${name}_copy` : name;
  if (temporary) await freeSlot(session, wanted);
  const replication = await openLogSession(ctx);
  const text = 'Tables will be read when the transactions that are open in the source have ended';
  const waiting = setTimeout(() => ctx.warn('waiting_for_transactions', text), WARN_AFTER_MS);
  try {
    const { system_identifier, timeline } = await serverPosition(replication);
    const { start, snapshot } = await createSlot(replication, wanted, { temporary }).catch((error) => {
      throw setUpError(error);
    });
    await holdSnapshot(session, { snapshot, tables });
    // Not on the session, which sees the snapshot: a table rewritten since looks empty there, and the values of a new
    // column are neither in the columns read nor in the log that begins here.
    for (const { at, request, shape } of tables) {
      await ofStream(at, async () => {
        const now = await shapeOf(replication, request);
        if (now.fingerprint !== shape.fingerprint) throw changedDuringRead(request.stream.name);
      });
    }
    return {
      start,
      source({ request }) {
        const { rows, mark } = publicationOf(publication, request);
        return { system_identifier, timeline, publication: rows, mark, slot: name };
      },
    };
  } finally {
    clearTimeout(waiting);
    await replication.close();
  }
}

async function holdSnapshot(session: PgSession, { snapshot, tables }: { snapshot: string; tables: Member[] }) {
  // The snapshot waits while own slots are read.
  await session.query(`${BEGIN}; set local idle_in_transaction_session_timeout = 0`);
  await session.query(`set transaction snapshot ${literal(snapshot)}`);
  for (const { at, request } of tables) await ofStream(at, () => holdTable(session, request));
}

/** Reads the rest of a stream's own slot. Its end is behind the start of the shared one's, so that no change is missing. */
async function* readOwnSlot(
  ctx: Context,
  { member, members, source }: { member: Member; members: readonly Member[]; source: LogIdentity },
): AsyncGenerator<ReplicatedBatch> {
  if (!isPlaced(member)) return;
  const { at, request, shape, state } = member;
  const name = slotName(request.reader_id!);
  const session = await PgSession.open(ctx, { phase: 'run' });
  const changes = followLog(ctx, { session, request, shape, name, from: state.cursor });
  for await (const { parts, state: reached } of withStates(at, changes)) {
    if (reached?.cursor != null) member.state = { ...reached, cursor: reached.cursor };
    yield { parts, ...(reached && { states: members.map((one) => one.state) }) };
  }
  hasJoined(member, member.state.cursor, source);
  yield { parts: [], states: members.map((one) => one.state), complete: true };
}

function hasJoined(member: Member, cursor: string, source: LogIdentity): void {
  member.state = { cursor, source };
  member.known = source;
  member.place = 'log';
}

async function* withStates(
  stream: number,
  items: AsyncGenerator<Batch>,
): AsyncGenerator<{ parts: ReplicatedBatch['parts']; state?: StreamState }> {
  try {
    for await (const { state, ...batch } of items) yield { parts: [{ stream, batch }], state };
  } catch (error) {
    throw new StreamsFailed(new Map([[stream, error]]));
  }
}

async function* partsOf(stream: number, items: AsyncGenerator<Batch>): AsyncGenerator<ReplicatedBatch> {
  for await (const { parts } of withStates(stream, items)) yield { parts };
}
