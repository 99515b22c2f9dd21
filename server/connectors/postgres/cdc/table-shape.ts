import type { ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError, RetryableError, SchemaChangedError } from '../../contract/errors.ts';
import { factName } from '../../contract/change-fields.ts';
import type { PgSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';
import type { LoggedColumn } from './pgoutput.ts';

/** Remedy when the log no longer continues from the state. */
export const RESET_CURSOR_HINT = "Reset the stream's cursor so that the next run reads the whole table again";

/** @throws ConfigurationError unless the server writes a logical log. */
export async function assertLogical(session: PgSession): Promise<void> {
  const { rows } = await session.query("select current_setting('wal_level'), pg_is_in_recovery()");
  const [[level, standby] = []] = rows;
  if (level !== 'logical') {
    throw new ConfigurationError(
      'wal_level_not_logical',
      `The server's wal_level is ${level}. Set it to logical and restart the server to use CDC`,
    );
  }
  if (standby === 't') {
    throw new ConfigurationError(
      'read_only_server',
      'The server is a read-only standby. Connect to the primary to use CDC',
    );
  }
}

/** A table as it is at one moment. */
export interface TableShape {
  oid: number;
  /** The columns in the log, in its order. */
  columns: LoggedColumn[];
  /** Changes with the columns, the replica identity, and when the table is recreated. */
  fingerprint: string;
}

interface Found extends LoggedColumn {
  type: string;
  /** The log contains its value for deleted rows. */
  in_identity: boolean;
  readable: boolean;
}

/**
 * Checks that the table still matches the catalog and that its log identifies deleted rows.
 * @throws SchemaChangedError, RetryableError `table_changed` if the catalog has to be refreshed first,
 * ConfigurationError `replica_identity_missing`.
 */
export async function assertFollowable(session: PgSession, request: ReadRequest): Promise<TableShape> {
  const { name } = request.stream;
  const { found, shape } = await readShape(session, request);
  const columns = new Map(found.map((column) => [column.name, column]));
  for (const { field } of request.columns) {
    if (factName(field)) continue;
    const column = field.path[0]!;
    const type = columns.get(column)?.type;
    if (type === undefined) throw new SchemaChangedError('column_missing', `${name} no longer has a column ${column}`);
    if (type !== field.source_type) {
      throw new SchemaChangedError(
        'column_type_changed',
        `The type of ${name}.${column} changed from ${field.source_type} to ${type}`,
      );
    }
  }
  const known = new Set(request.stream.fields.map(({ path }) => path[0]));
  if (found.some((column) => column.readable && !known.has(column.name))) throw changedDuringRead(name);
  assertIdentity(request, new Set(found.filter(({ in_identity }) => in_identity).map((column) => column.name)));
  return shape;
}

/** The current table, whatever snapshot the session's transaction has. */
export const shapeOf = async (session: PgSession, request: ReadRequest): Promise<TableShape> =>
  (await readShape(session, request)).shape;

/** The next attempt handles the change by the connection's policy. Nothing of this attempt is kept. */
export const changedDuringRead = (table: string) =>
  new RetryableError('table_changed', `${table} changed during the read. The next attempt reads its new schema`);

async function readShape(session: PgSession, request: ReadRequest): Promise<{ found: Found[]; shape: TableShape }> {
  const { namespace, name } = request.stream;
  // Then only built-in types are printed without a schema, as in the catalog.
  await session.query("begin read only; set local search_path = ''");
  const { rows } = await session.query(
    `select a.attname, a.atttypid, a.atttypmod, format_type(a.atttypid, a.atttypmod),
            case c.relreplident when 'f' then true when 'd' then pk.indimmediate and a.attnum = any(pk.indkey)
                                when 'i' then a.attnum = any(ri.indkey) else false end,
            has_column_privilege(c.oid, a.attnum, 'select'), c.oid, pg_relation_filenode(c.oid)
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
       left join pg_index pk on pk.indrelid = c.oid and pk.indisprimary
       left join pg_index ri on ri.indrelid = c.oid and ri.indisreplident
      where n.nspname = ${literal(namespace ?? '')} and c.relname = ${literal(name)}
      order by a.attnum`,
  );
  await session.query('commit');
  if (rows.length === 0) throw new SchemaChangedError('table_missing', `Table ${namespace}.${name} no longer exists`);
  const found = rows.map(([column, oid, modifier, type, identity, readable]) => ({
    name: column!,
    typeOid: Number(oid),
    typeMod: Number(modifier),
    type: type!,
    in_identity: identity === 't',
    readable: readable === 't',
  }));
  return { found, shape: { oid: Number(rows[0]![6]), columns: found, fingerprint: JSON.stringify(rows) } };
}

/** Whether both lists describe the same columns. */
export const sameColumns = (some: readonly LoggedColumn[], others: readonly LoggedColumn[]): boolean =>
  some.length === others.length &&
  some.every((one, at) => {
    const other = others[at]!;
    return one.name === other.name && one.typeOid === other.typeOid && one.typeMod === other.typeMod;
  });

export const identityMissing = (table: string) =>
  new ConfigurationError(
    'replica_identity_missing',
    `${table} has no primary key, or REPLICA IDENTITY NOTHING, so the log does not identify deleted rows. ` +
      'Add a primary key, or run ALTER TABLE … REPLICA IDENTITY FULL',
  );

export const notLogged = (table: string) =>
  new ConfigurationError(
    'table_not_logged',
    `The log no longer has all changes of ${table}: the table or one of its partitions is unlogged or foreign, or another table inherits from it. ` +
      'Undo that and reset the cursor, or deselect the stream',
  );

/** Checks that the log identifies deleted and changed rows by the key. */
function assertIdentity({ stream, primary_key }: ReadRequest, logged: ReadonlySet<string>): void {
  if (logged.size === 0) throw identityMissing(stream.name);
  const missing = primary_key.map((path) => path[0]!).filter((column) => !logged.has(column));
  if (missing.length > 0) {
    throw new ConfigurationError(
      'replica_identity_insufficient',
      `The log lacks ${missing.join(', ')} of deleted rows of ${stream.name}. Use ${[...logged].join(', ')} as the key, ` +
        'or run ALTER TABLE … REPLICA IDENTITY FULL',
    );
  }
}
