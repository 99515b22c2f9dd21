import { warnOfChanged } from '../../cells/value-gate.ts';
import type { ConnectorContext, PublishedStream, PublishGroup } from '../../contract/connector.ts';
import { ConfigurationError, FencedError } from '../../contract/errors.ts';
import { STATE_TABLE } from '../../kits/sql/state-row.ts';
import { resolveTarget } from '../../kits/sql/target.ts';
import { PgSession } from '../connection/session.ts';
import type { PostgresDestinationConfig } from '../connection/settings.ts';
import { literal, relation } from '../connection/sql.ts';
import { postgres } from './dialect.ts';
import { lockTogether } from './locks.ts';
import { dropReady, parseReady, READY, type ReadyTable } from './ready.ts';
import { attachments, insertFresh, prepareInPlace, refuseReferenced, replaceTable } from './swap.ts';
import { findTable } from './tables.ts';
import type { PgTable, PgTarget } from './target.ts';

type Context = ConnectorContext<PostgresDestinationConfig>;
type Placed = PublishGroup & { schema: string };

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
    await lockTogether(session, await presentTables(session, placed));
    const ready = await readyTables(session, placed);
    if (ready === null) return;
    const tables: Replacement[] = [];
    for (const one of ready) {
      const old = await findTable(session, placed.schema, one.table);
      tables.push({ target: targetOf(placed, one, old), fresh: one.fresh, old });
    }
    await replaceAll(ctx, session, tables);
    await session.query(
      `update ${relation(placed.schema, STATE_TABLE)} set finished = true, ${READY} = null, updated_at = now()
        where connection_id = ${literal(group.connection_id)} and stream_id in (${streamIds(group.streams)})`,
    );
  });
}

/** Also takes the streams out of the hands of attempts with an older fence. */
export async function discardTables(ctx: Context, group: PublishGroup): Promise<void> {
  const placed = { ...group, schema: group.schema ?? ctx.config.schema };
  await inTransaction(ctx, async (session) => {
    const table = relation(placed.schema, STATE_TABLE);
    const { rows } = await session.query('select to_regclass($1)', { values: [table] });
    // Nothing was ever opened here.
    if (rows[0]?.[0] == null) return;
    const states = await lockStates(session, placed);
    for (const stream of group.streams) {
      const state = states.get(stream.stream_id);
      if (!state || state.fence > stream.fence) continue;
      const left = state.ready?.stream_run_id === stream.stream_run_id ? state.ready : null;
      if (left) await dropReady(session, placed.schema, left);
      await session.query(
        `update ${table} set fence = ${stream.fence}${left ? `, ${READY} = null` : ''}
          where connection_id = ${literal(group.connection_id)} and stream_id = ${literal(stream.stream_id)}`,
      );
    }
  });
}

/** The tables that the new ones replace, as far as they exist. */
async function presentTables(session: PgSession, { schema, connection_id, streams }: Placed): Promise<string[]> {
  const { rows } = await session.query(
    `select c.relname from ${relation(schema, STATE_TABLE)} s
       join pg_namespace n on n.nspname = ${literal(schema)}
       join pg_class c on c.relnamespace = n.oid and c.relkind in ('r', 'p') and c.relname = s.${READY}::jsonb ->> 'table'
      where s.connection_id = ${literal(connection_id)} and s.stream_id in (${streamIds(streams)})`,
  );
  return rows.map(([name]) => relation(schema, name!));
}

const streamIds = (streams: readonly PublishedStream[]) =>
  streams.map(({ stream_id }) => literal(stream_id)).join(', ');

async function inTransaction(ctx: Context, work: (session: PgSession) => Promise<void>): Promise<void> {
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    await session.query(
      "begin; set local lock_timeout = '30s'; set local search_path = ''; set idle_in_transaction_session_timeout = '60s'",
    );
    await work(session);
    await session.query('commit', { slow: true });
  } finally {
    await session.close();
  }
}

interface StoredState {
  fence: number;
  stream_run_id: string | null;
  finished: boolean;
  ready: ReadyTable | null;
}

async function lockStates(
  session: PgSession,
  { schema, connection_id, streams }: Placed,
): Promise<Map<string, StoredState>> {
  const { rows } = await session.query(
    `select stream_id, fence, stream_run_id, finished, ${READY} from ${relation(schema, STATE_TABLE)}
      where connection_id = ${literal(connection_id)}
        and stream_id in (${streamIds(streams)})
      order by stream_id for update`,
  );
  return new Map(
    rows.map(([stream_id, fence, stream_run_id, finished, ready]) => [
      stream_id!,
      {
        fence: Number(fence),
        stream_run_id: stream_run_id ?? null,
        finished: finished === 't',
        ready: parseReady(ready),
      },
    ]),
  );
}

/** Null: an earlier call has published them. */
async function readyTables(session: PgSession, group: Placed): Promise<ReadyTable[] | null> {
  const states = await lockStates(session, group);
  const isPublished = ({ stream_id, stream_run_id }: PublishedStream) => {
    const state = states.get(stream_id);
    return state?.stream_run_id === stream_run_id && state.finished && state.ready === null;
  };
  if (group.streams.every(isPublished)) return null;
  return group.streams.map((stream) => {
    const state = states.get(stream.stream_id);
    if (!state || state.fence !== stream.fence) throw new FencedError(state?.fence ?? null);
    const { ready } = state;
    if (ready?.stream_run_id === stream.stream_run_id && ready.publish_with === group.publish_with) return ready;
    throw new ConfigurationError(
      'table_not_ready',
      `The new rows of a stream of the run are no longer in the schema ${group.schema}, so none of its tables can be published. Run the connection again`,
    );
  });
}

function targetOf({ schema, connection_id, publish_with }: Placed, ready: ReadyTable, old: PgTable | null): PgTarget {
  const { table, columns, primary_key, stream_run_id, inexact_values } = ready;
  const target = {
    schema,
    table,
    columns,
    primary_key,
    publish_with,
    connection_id,
    stream_run_id,
    inexact_values,
    mode: 'overwrite' as const,
    cursor_column: null,
    stream_id: '',
    connection_run_id: '',
    fence: 0,
    state_version: 0,
  };
  return resolveTarget(postgres, target, old);
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
