import { ConfigurationError, ConnectorError, RetryableError } from '../../contract/errors.ts';
import { fullLsn } from '../connection/lsn.ts';
import type { PgSession } from '../connection/session.ts';
import { identifier, literal, relation } from '../connection/sql.ts';

/** Time for a terminated reader to release the slot. */
const RELEASE_TIMEOUT_MS = 10_000;
const POLL_MS = 50;

/** Name of a CDC consumer's slot and publication. PostgreSQL allows only letters, digits and underscores. */
export const slotName = (reader_id: string) => `pipeline_${reader_id.toLowerCase().replaceAll(/[^a-z0-9]/g, '')}`;

export interface Slot {
  active_pid: string | null;
  /** The server has removed log that the slot needs. */
  lost: boolean;
  /**
   * Everything before this LSN is confirmed and no longer sent. Null: the slot is still being created, which waits for
   * open transactions, and is gone as soon as the session that creates it ends.
   */
  confirmed: string | null;
  /**
   * The log that the server keeps for the slot, in bytes, also what it has not written yet, as after a commit that did not
   * wait. A transaction that is open at the source holds back where decoding would have to start again, also when everything
   * before it is confirmed.
   */
  lag_bytes: number;
  /** Of it, log before the confirmed LSN: a read decodes it again, unless the server lets go of it. */
  confirmed_bytes: number;
}

/** Whether changes can be read from the slot, now and later. */
export const isUsable = (slot: Slot | null): slot is Slot & { confirmed: string } =>
  slot !== null && !slot.lost && slot.confirmed !== null;

export async function findSlot(session: PgSession, name: string): Promise<Slot | null> {
  const { rows } = await session.query(
    `select active_pid, wal_status = 'lost', confirmed_flush_lsn,
            greatest(0, pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn()
                                        else pg_current_wal_insert_lsn() end, least(restart_lsn, confirmed_flush_lsn))),
            greatest(0, confirmed_flush_lsn - restart_lsn)
       from pg_replication_slots where slot_name = ${literal(name)}`,
  );
  const [found] = rows;
  if (!found) return null;
  const [active_pid, lost, confirmed, lag, again] = found;
  return {
    active_pid: active_pid ?? null,
    lost: lost === 't',
    confirmed: confirmed ? fullLsn(confirmed) : null,
    lag_bytes: Number(lag ?? 0),
    confirmed_bytes: Number(again ?? 0),
  };
}

/** Terminates the reader of an older attempt. @throws RetryableError if the reader keeps the slot. */
export async function freeSlot(session: PgSession, name: string): Promise<void> {
  const deadline = performance.now() + RELEASE_TIMEOUT_MS;
  for (let pid = await reader(session, name); pid !== null; pid = await reader(session, name)) {
    await session.query(`select pg_terminate_backend(${Number(pid)})`);
    if (performance.now() > deadline) {
      throw new RetryableError('replication_slot_in_use', `Replication slot ${name} is in use by another process`);
    }
    await Bun.sleep(POLL_MS);
  }
}

const reader = async (session: PgSession, name: string) => (await findSlot(session, name))?.active_pid ?? null;

/**
 * Creates the slot, with a snapshot of everything committed before its first change. The snapshot is valid until the
 * session runs another statement. Waits for open transactions in the source.
 * @param replication a session opened for replication. A temporary slot ends with it
 * @throws RetryableError `replication_slot_in_use` if another reader was faster; the next attempt sees its slot
 */
export async function createSlot(
  replication: PgSession,
  name: string,
  { temporary = false } = {},
): Promise<{ start: string; snapshot: string }> {
  const kind = temporary ? 'TEMPORARY LOGICAL' : 'LOGICAL';
  const isCopied = !temporary && (await copiesSlots(replication));
  const options = isCopied ? "(SNAPSHOT 'export', FAILOVER true)" : 'EXPORT_SNAPSHOT';
  const text = `CREATE_REPLICATION_SLOT ${identifier(name)} ${kind} pgoutput ${options}`;
  const { rows } = await replication.query(text, { slow: true }).catch((error: unknown) => {
    throw isTaken(error) ? createdMeanwhile(name) : error;
  });
  const [[, start, snapshot] = []] = rows;
  if (!start || !snapshot) throw new Error('the server created a slot without a start position');
  return { start: fullLsn(start), snapshot };
}

const isTaken = (error: unknown) => error instanceof ConnectorError && error.code === 'object_exists';

const createdMeanwhile = (name: string) =>
  new RetryableError('replication_slot_in_use', `Another process has just created replication slot ${name}`);

/**
 * A temporary copy of a slot, which ends with the session.
 * @returns its name; null: the server has no free slot, or is older than version 12
 */
export async function copySlot(session: PgSession, name: string): Promise<string | null> {
  try {
    const { rows } = await session.query(
      `select slot_name from pg_catalog.pg_copy_logical_replication_slot(
         ${literal(name)}, ${literal(`${name}_`)} || pg_backend_pid(), true)`,
    );
    return rows[0]![0]!;
  } catch (error) {
    const refused = setUpError(error);
    if (refused instanceof ConnectorError && !refused.retryable) return null;
    throw error;
  }
}

/**
 * Has the server note the open transactions in its log. It does so for each new slot, for any user that may replicate;
 * `pg_log_standby_snapshot` is from version 16 on and for few users.
 */
export async function noteTransactions(session: PgSession, name: string): Promise<void> {
  const slot = `${literal(`${name}_note_`)} || pg_backend_pid()`;
  try {
    // After the note, the server waits for the transactions that are open, and without a free slot it makes none.
    await session.query(`begin; set local lock_timeout = '100ms';
      select pg_create_logical_replication_slot(${slot}, 'pgoutput', true); select pg_drop_replication_slot(${slot}); commit`);
  } catch {
    // Fails if the session has ended.
    await session.query('rollback');
  }
}

/** Whether a standby can keep a copy of a slot, so that it is still there after a failover: from version 17 on. */
async function copiesSlots(session: PgSession): Promise<boolean> {
  const { rows } = await session.query(
    "select current_setting('server_version_num')::int >= 170000 and not pg_is_in_recovery()",
  );
  return rows[0]?.[0] === 't';
}

export async function dropSlot(session: PgSession, name: string): Promise<void> {
  if (!(await findSlot(session, name))) return;
  await freeSlot(session, name);
  // Unless it is gone with its reader, which was still creating it.
  await session.query(
    `select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = ${literal(name)}`,
  );
}

export async function createPublication(
  session: PgSession,
  name: string,
  table: { namespace: string; name: string },
): Promise<void> {
  await session.query(`drop publication if exists ${identifier(name)}`);
  // Publishes rows of partitions as rows of the partitioned table.
  await session.query(
    `create publication ${identifier(name)} for table ${relation(table.namespace, table.name)} with (publish_via_partition_root = true)`,
  );
}

export async function dropPublication(session: PgSession, name: string): Promise<void> {
  await session.query(`drop publication if exists ${identifier(name)}`);
}

/** Rewrites an error of the set-up so that it names the missing privilege or setting. */
export function setUpError(error: unknown): unknown {
  if (!(error instanceof ConnectorError)) return error;
  const { message } = error;
  if (/replication slots are in use/.test(message)) {
    return new ConfigurationError(
      'no_replication_slot_free',
      `The server has no free replication slot. Raise max_replication_slots or drop unused slots. ${message}`,
    );
  }
  if (error.code === 'permission_denied' || /replication role|walsender|WAL sender/i.test(message)) {
    return new ConfigurationError(
      'replication_not_permitted',
      `The user cannot replicate. It needs the REPLICATION attribute, ownership of the table, and CREATE on the database. ${message}`,
    );
  }
  return error;
}
