import { warnOfChanged } from '../../cells/value-gate.ts';
import type { ConnectorContext, PublishGroup } from '../../contract/connector.ts';
import {
  discardReady,
  ofStreams,
  type PlacedGroup,
  publishedTarget,
  READY,
  readyTables,
  recordPublished,
} from '../../kits/sql/publish/ready.ts';
import { STATE_TABLE } from '../../kits/sql/state-row.ts';
import { PgSession } from '../connection/session.ts';
import type { PostgresDestinationConfig } from '../connection/settings.ts';
import { literal, relation } from '../connection/sql.ts';
import { postgres } from './dialect.ts';
import { LOCK_LIMIT, lockTables } from './locks.ts';
import { discardPending } from './pending-table.ts';
import { attachments, insertFresh, prepareInPlace, refuseReferenced, replaceTable } from './swap.ts';
import { findTable } from './tables.ts';
import type { PgTable, PgTarget } from './target.ts';

type Context = ConnectorContext<PostgresDestinationConfig>;

/** A complete new table, and the table that it replaces. */
interface Replacement {
  target: PgTarget;
  fresh: string;
  old: PgTable | null;
}

/** One transaction for all tables: readers see the old ones until its commit, and the new ones from then on. */
export async function publishTables(ctx: Context, group: PublishGroup): Promise<void> {
  const placed = { ...group, schema: group.schema ?? ctx.config.schema };
  await inTransaction(ctx, async (session) => {
    // Before the states, for which other streams would wait meanwhile.
    await lockTables(session, await presentTables(session, placed));
    const db = { session, dialect: postgres };
    const found = await readyTables(db, placed);
    if (found === null) return;
    const tables: Replacement[] = [];
    for (const ready of found) {
      const old = await findTable(session, placed.schema, ready.table);
      tables.push({ target: publishedTarget(postgres, placed, { ready, old }), fresh: ready.fresh, old });
    }
    await replaceAll(ctx, session, tables);
    await recordPublished(db, placed);
  });
}

export async function discardTables(ctx: Context, group: PublishGroup): Promise<void> {
  const placed = { ...group, schema: group.schema ?? ctx.config.schema };
  await inTransaction(ctx, async (session) => {
    await discardReady({ session, dialect: postgres }, placed);
    await discardPending(session, placed);
  });
}

/** The tables that the new ones replace, as far as they exist. */
async function presentTables(session: PgSession, group: PlacedGroup): Promise<string[]> {
  const { schema } = group;
  const { rows } = await session.query(
    `select c.relname from ${relation(schema, STATE_TABLE)} s
       join pg_namespace n on n.nspname = ${literal(schema)}
       join pg_class c on c.relnamespace = n.oid and c.relkind in ('r', 'p') and c.relname = s.${READY}::jsonb ->> 'table'
      where ${ofStreams({ dialect: postgres }, group)}`,
  );
  return rows.map(([name]) => relation(schema, name!));
}

async function inTransaction(ctx: Context, work: (session: PgSession) => Promise<void>): Promise<void> {
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    await session.query(
      `begin; set local lock_timeout = '${LOCK_LIMIT}'; set local search_path = ''; set idle_in_transaction_session_timeout = '60s'`,
    );
    await work(session);
    await session.query('commit', { slow: true });
  } finally {
    await session.close();
  }
}

/**
 * A reader whose snapshot is older than the commit sees the rows of a new table, and the old rows of a table whose rows
 * were replaced. It must not see both kinds, so one table that cannot be dropped has the rows of all tables replaced.
 */
async function replaceAll(ctx: Context, session: PgSession, tables: readonly Replacement[]): Promise<void> {
  const inPlace = await mustStay(session, tables);
  const created = tables.filter(({ old }) => old === null);
  const replaced = tables.filter(({ old }) => old !== null);
  if (!inPlace) for (const { target, ...how } of replaced) await replaceTable(session, target, how);
  else await replaceRows(ctx, session, replaced as (Replacement & { old: PgTable })[]);
  for (const { target, ...how } of created) await replaceTable(session, target, how);
}

/** @throws ConfigurationError `table_is_referenced` by a table that is not published with it */
async function mustStay(session: PgSession, tables: readonly Replacement[]): Promise<boolean> {
  const oids = tables.flatMap(({ old }) => (old ? [old.oid] : []));
  let stays = false;
  for (const { target, old } of tables) {
    if (!old) continue;
    const { referenced, attached } = await attachments(session, old);
    if (referenced && (await referencedFrom(session, old, oids))) throw refuseReferenced(target);
    stays ||= referenced || attached;
  }
  return stays;
}

/** Whether a foreign key outside the group refers to the table and is checked at once. */
async function referencedFrom(session: PgSession, { oid }: PgTable, oids: readonly string[]): Promise<boolean> {
  const { rows } = await session.query(
    `select 1 from pg_constraint where contype = 'f' and confrelid = $1::oid and not condeferrable
        and conrelid <> all ($2::oid[]) limit 1`,
    { values: [oid, `{${oids.join(',')}}`] },
  );
  return rows.length > 0;
}

/** Rows that refer to others are deleted before them and inserted after them. */
async function replaceRows(
  ctx: Context,
  session: PgSession,
  tables: readonly (Replacement & { old: PgTable })[],
): Promise<void> {
  for (const { target, old, fresh } of tables) {
    const changed = await prepareInPlace(session, target, { old, fresh });
    warnOfChanged(target.table, changed, (code, message) => ctx.warn(code, message));
  }
  await session.query('set constraints all deferred');
  const parentsFirst = await byReference(session, tables);
  for (const { target } of parentsFirst.toReversed()) {
    await session.query(`delete from ${target.relation}`, { slow: true });
  }
  for (const { target, fresh } of parentsFirst) await insertFresh(session, target, fresh);
}

/** Referenced tables first. Tables that refer to each other keep their order; their keys have to be deferrable. */
async function byReference<One extends { old: PgTable }>(session: PgSession, tables: readonly One[]): Promise<One[]> {
  const oids = `{${tables.map(({ old }) => old.oid).join(',')}}`;
  const { rows } = await session.query(
    `select conrelid, confrelid from pg_constraint where contype = 'f' and conrelid <> confrelid
        and conrelid = any ($1::oid[]) and confrelid = any ($1::oid[])`,
    { values: [oids] },
  );
  const left = new Set(tables);
  const ordered: One[] = [];
  while (left.size > 0) {
    const waits = ({ old }: One) =>
      rows.some(([from, to]) => from === old.oid && [...left].some((one) => one.old.oid === to));
    const next = [...left].find((one) => !waits(one)) ?? [...left][0]!;
    left.delete(next);
    ordered.push(next);
  }
  return ordered;
}
