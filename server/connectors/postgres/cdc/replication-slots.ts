import { ConfigurationError, ConnectorError, RetryableError } from '../../contract/errors.ts';
import { fullLsn } from '../connection/lsn.ts';
import type { PgSession } from '../connection/session.ts';
import { identifier, literal, relation } from '../connection/sql.ts';

/** How long a reader that was taken for dead has to be gone. */
const LEAVING_MS = 10_000;
const LOOK_MS = 50;

/** Slot and publication of a reader have one name: letters, digits and underscores alone are allowed. */
export const slotName = (reader_id: string) => `pipeline_${reader_id.toLowerCase().replaceAll(/[^a-z0-9]/g, '')}`;

export interface Slot {
  active_pid: string | null;
  /** The server has thrown away what the slot was to keep. */
  lost: boolean;
  /** What comes before was acknowledged and is not sent any more. */
  confirmed: string;
  /** How much log there is behind it, in bytes. */
  lag_bytes: number;
}

export async function findSlot(session: PgSession, name: string): Promise<Slot | null> {
  const { rows } = await session.query(
    `select active_pid, wal_status = 'lost', confirmed_flush_lsn,
            greatest(0, pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn()
                                        else pg_current_wal_lsn() end, confirmed_flush_lsn))
       from pg_replication_slots where slot_name = ${literal(name)}`,
  );
  const [found] = rows;
  if (!found) return null;
  const [active_pid, lost, confirmed, lag] = found;
  return {
    active_pid: active_pid ?? null,
    lost: lost === 't',
    confirmed: confirmed ? fullLsn(confirmed) : '00000000/00000000',
    lag_bytes: Number(lag ?? 0),
  };
}

/** Ends whoever still reads the slot: only the newest attempt asks for it. @throws RetryableError when he does not go. */
export async function freeSlot(session: PgSession, name: string): Promise<void> {
  const deadline = performance.now() + LEAVING_MS;
  for (let pid = await reader(session, name); pid !== null; pid = await reader(session, name)) {
    await session.query(`select pg_terminate_backend(${Number(pid)})`);
    if (performance.now() > deadline) {
      throw new RetryableError('replication_slot_in_use', `Another process reads the replication slot ${name}`);
    }
    await Bun.sleep(LOOK_MS);
  }
}

const reader = async (session: PgSession, name: string) => (await findSlot(session, name))?.active_pid ?? null;

/**
 * Makes the slot, with a snapshot of all that is committed before its first change. The snapshot can be used until the
 * session gets another statement. Waits for the transactions that are open in the source.
 * @param replication a session opened for replication.
 */
export async function createSlot(replication: PgSession, name: string): Promise<{ start: string; snapshot: string }> {
  const text = `CREATE_REPLICATION_SLOT ${identifier(name)} LOGICAL pgoutput EXPORT_SNAPSHOT`;
  const { rows } = await replication.query(text, { slow: true });
  const [[, start, snapshot] = []] = rows;
  if (!start || !snapshot) throw new Error('the server created a slot without a start position');
  return { start: fullLsn(start), snapshot };
}

export async function dropSlot(session: PgSession, name: string): Promise<void> {
  if (!(await findSlot(session, name))) return;
  await freeSlot(session, name);
  await session.query(`select pg_drop_replication_slot(${literal(name)})`);
}

export async function createPublication(
  session: PgSession,
  name: string,
  table: { namespace: string; name: string },
): Promise<void> {
  await session.query(`drop publication if exists ${identifier(name)}`);
  // Rows of partitions come as rows of the table that they are of.
  await session.query(
    `create publication ${identifier(name)} for table ${relation(table.namespace, table.name)} with (publish_via_partition_root = true)`,
  );
}

export async function dropPublication(session: PgSession, name: string): Promise<void> {
  await session.query(`drop publication if exists ${identifier(name)}`);
}

/** The error of a step that needs rights or room on the server, in the words of who has to give them. */
export function setUpError(error: unknown): unknown {
  if (!(error instanceof ConnectorError)) return error;
  const { message } = error;
  if (/replication slots are in use/.test(message)) {
    return new ConfigurationError(
      'no_replication_slot_free',
      `The server has no replication slot free: raise max_replication_slots, or drop unused slots. ${message}`,
    );
  }
  if (error.code === 'permission_denied' || /replication role|walsender|WAL sender/i.test(message)) {
    return new ConfigurationError(
      'replication_not_permitted',
      `This user may not replicate: it needs the attribute REPLICATION, to own the table, and CREATE on the database. ${message}`,
    );
  }
  return error;
}
