import { setTimeout as sleep } from 'node:timers/promises';
import { warnOfChanged } from '../../cells/value-gate.ts';
import type { ConnectorContext, PublishGroup } from '../../contract/connector.ts';
import { ConnectorError, RetryableError } from '../../contract/errors.ts';
import { columnList, type SqlDatabase } from '../../kits/sql/dialect.ts';
import { changedByCopy } from '../../kits/sql/gate.ts';
import { PENDING_TABLE, type PendingTable } from '../../kits/sql/publish/pending-table.ts';
import {
  discardReady,
  notReady,
  ofStreams,
  parseReady,
  type PlacedGroup,
  publishedTarget,
  READY,
  type ReadyTable,
  readyTables,
  recordPublished,
} from '../../kits/sql/publish/ready.ts';
import { type StateRow, STATE_TABLE } from '../../kits/sql/state-row.ts';
import { adaptTable, createTable } from '../../kits/sql/tables.ts';
import type { ExistingTable } from '../../kits/sql/target.ts';
import { type MysqlSession, withSession } from '../connection/session.ts';
import type { MysqlDestinationConfig } from '../connection/settings.ts';
import { literal, relation } from '../connection/sql.ts';
import { castType } from './cast-type.ts';
import { mysqlDialect } from './dialect.ts';
import { lockDefinitions } from './locks.ts';
import { hasAttachments, oldName } from './swap.ts';
import { findTable } from './tables.ts';

type Context = ConnectorContext<MysqlDestinationConfig>;
type Database = SqlDatabase<MysqlSession>;

/** In short attempts: all readers queue up behind a lock that waits. */
const LOCK_SECONDS = 1;
const PAUSE_MS = 500;
const MAX_ATTEMPTS = 200;

/** A complete new table, and what there is of it, of the table that it replaces, and of that one after the rename. */
interface Replacement {
  ready: ReadyTable;
  fresh: ExistingTable | null;
  old: ExistingTable | null;
  replaced: ExistingTable | null;
}

/**
 * One RENAME for all tables: readers see the old ones or the new ones. It commits by itself, so its intent is noted
 * before it, and recorded after it. A crash in between leaves tables from which the next call sees what has happened.
 */
export async function publishTables(ctx: Context, group: PublishGroup): Promise<void> {
  const placed = { ...group, schema: group.schema ?? ctx.config.database };
  await withSession(ctx, { phase: 'run' }, async (session) => {
    const db = { session, dialect: mysqlDialect(session.version) };
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      if (await lockDefinitions(session, placed.schema, () => publishOnce(ctx, db, placed))) return;
      await sleep(PAUSE_MS, undefined, { signal: ctx.signal });
    }
    throw new RetryableError(
      'lock_timeout',
      `The tables of ${placed.schema} are in use, so the new ones could not be published together`,
    );
  });
}

/** Under the lock for definitions, so that no stream is opened meanwhile. False: readers hold the tables. */
async function publishOnce(ctx: Context, db: Database, group: PlacedGroup): Promise<boolean> {
  const { session } = db;
  await session.query('start transaction');
  const found = await readyTables(db, group);
  if (found === null) {
    await session.query('commit');
    return true;
  }
  const tables: Replacement[] = [];
  for (const ready of found) tables.push(await replacementOf(session, group.schema, ready));
  const left = tables.filter(({ fresh }) => fresh !== null);
  // The rename is atomic, so either all of them are left or none.
  if (!tables.every((one) => left.includes(one) || isRenamed(one))) throw notReady(group.schema);
  let stays = false;
  for (const { ready, old } of left) {
    const swap = { schema: group.schema, table: ready.table, fresh: ready.fresh };
    if (old && (await hasAttachments(session, swap))) stays = true;
  }
  const leftovers = tables.map(({ ready }) => {
    const { table, fresh } = ready;
    return { ready, table, name: stays ? fresh : oldName(ready) };
  });
  if (stays) await replaceRows(ctx, db, { group, tables: left });
  else {
    for (const one of left) await note(db, group, { ...one.ready, replaces: one.old !== null });
    await session.query('commit');
    if (left.length > 0 && !(await rename(session, group.schema, left))) return false;
    await session.query('start transaction');
  }
  await record(db, group, leftovers);
  await session.query('commit');
  await dropLeftovers(db, group, leftovers);
  return true;
}

async function replacementOf(session: MysqlSession, schema: string, ready: ReadyTable): Promise<Replacement> {
  const find = (table: string) => findTable(session, schema, table);
  const { table, fresh } = ready;
  return { ready, fresh: await find(fresh), old: await find(table), replaced: await find(oldName({ table, fresh })) };
}

const isRenamed = ({ ready, old, replaced }: Replacement) =>
  ready.replaces !== undefined && old !== null && (replaced !== null || !ready.replaces);

/** @returns false if it did not get the tables in time */
async function rename(session: MysqlSession, schema: string, tables: readonly Replacement[]): Promise<boolean> {
  const steps = tables.flatMap(({ ready, old }) => [
    ...(old ? [`${relation(schema, ready.table)} to ${relation(schema, oldName(ready))}`] : []),
    `${relation(schema, ready.fresh)} to ${relation(schema, ready.table)}`,
  ]);
  await session.query(`set lock_wait_timeout = ${LOCK_SECONDS}`);
  try {
    await session.query(`rename table ${steps.join(', ')}`, { slow: true });
    return true;
  } catch (error) {
    if (error instanceof ConnectorError && error.code === 'lock_timeout') return false;
    throw error;
  } finally {
    await session.query('set lock_wait_timeout = 60');
  }
}

/** Tables with attached objects keep their place. Then all rows are replaced, in one transaction that stays open. */
async function replaceRows(
  ctx: Context,
  db: Database,
  { group, tables }: { group: PlacedGroup; tables: readonly Replacement[] },
): Promise<void> {
  const { session, dialect } = db;
  const targets = tables.map((one) => ({ ...one, target: publishedTarget(dialect, group, one) }));
  for (const { target, old, ready } of targets) {
    if (old === null) {
      await createTable(db, target, { name: ready.table, key: ready.primary_key });
      continue;
    }
    await adaptTable(db, target, old);
    const from = relation(group.schema, ready.fresh);
    const changed = await changedByCopy(db, target, { from, old, as: castType });
    warnOfChanged(target.table, changed, (code, message) => ctx.warn(code, message));
  }
  await session.query('start transaction');
  await readyTables(db, group);
  for (const { target, ready } of targets) {
    const columns = columnList(
      dialect,
      target.columns.map(({ name }) => name),
    );
    await session.query(`delete from ${target.relation}`, { slow: true });
    const rows = `select ${columns} from ${relation(group.schema, ready.fresh)}`;
    await session.query(`insert into ${target.relation} (${columns}) ${rows}`, { slow: true });
  }
}

async function note(db: Database, group: PlacedGroup, ready: ReadyTable): Promise<void> {
  await db.session.query(
    `update ${relation(group.schema, STATE_TABLE)} set ${READY} = ${literal(JSON.stringify(ready))}
      where ${ofStream(db, group, ready)}`,
  );
}

const ofStream = (db: Database, group: PlacedGroup, { stream_run_id }: ReadyTable) =>
  ofStreams(db, { ...group, streams: group.streams.filter((one) => one.stream_run_id === stream_run_id) });

/** A table that is not needed any more. */
type Leftover = Pick<PendingTable, 'name' | 'table'> & { ready: ReadyTable };

/** Notes what is to be dropped, for the next attempt to open the stream. */
async function record(db: Database, group: PlacedGroup, leftovers: readonly Leftover[]): Promise<void> {
  await recordPublished(db, group);
  for (const { ready, name, table } of leftovers) {
    const pending: PendingTable = { name, table, phase: 'loading' };
    await db.session.query(
      `update ${relation(group.schema, STATE_TABLE)} set ${PENDING_TABLE} = ${literal(JSON.stringify(pending))}
        where ${ofStream(db, group, ready)}`,
    );
  }
}

async function dropLeftovers(db: Database, group: PlacedGroup, leftovers: readonly Leftover[]): Promise<void> {
  for (const { name } of leftovers) {
    await db.session.query(`drop table if exists ${relation(group.schema, name)}`, { slow: true });
  }
  await db.session.query(
    `update ${relation(group.schema, STATE_TABLE)} set ${PENDING_TABLE} = null where ${ofStreams(db, group)}`,
  );
}

/** After a crash between the rename and its record: the tables are published, and the old one is left. */
export async function dropReplaced(session: MysqlSession, schema: string, { extra }: StateRow): Promise<void> {
  const ready = parseReady(extra[READY]);
  if (ready?.replaces) await session.query(`drop table if exists ${relation(schema, oldName(ready))}`, { slow: true });
}

export async function discardTables(ctx: Context, group: PublishGroup): Promise<void> {
  const placed = { ...group, schema: group.schema ?? ctx.config.database };
  await withSession(ctx, { phase: 'run' }, (session) =>
    lockDefinitions(session, placed.schema, () =>
      discardReady({ session, dialect: mysqlDialect(session.version) }, placed),
    ),
  );
}
