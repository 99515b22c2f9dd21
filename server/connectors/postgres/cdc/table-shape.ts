import type { ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError, RetryableError, SchemaChangedError } from '../../contract/errors.ts';
import { factName } from '../read/change-fields.ts';
import type { PgSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';

/** What helps when the log does not lead on from the state. */
export const AGAIN = "Reset the stream's cursor: the next run then reads the whole table again";

/** @throws ConfigurationError for a server whose log has not what is needed. */
export async function assertLogical(session: PgSession): Promise<void> {
  const { rows } = await session.query("select current_setting('wal_level'), pg_is_in_recovery()");
  const [[level, standby] = []] = rows;
  if (level !== 'logical') {
    throw new ConfigurationError(
      'wal_level_not_logical',
      `The server's wal_level is ${level}: changes can be followed once it is set to logical and the server was restarted`,
    );
  }
  if (standby === 't') {
    throw new ConfigurationError(
      'read_only_server',
      'The server is a read-only standby: changes are followed on the primary',
    );
  }
}

/** A column as the log tells of it. */
export interface LoggedColumn {
  name: string;
  typeOid: number;
  typeMod: number;
}

/** A table as it is at one moment. */
export interface TableShape {
  /** Those that the log has, in its order. */
  columns: LoggedColumn[];
  /** Differs whenever the table is not what it was: other columns, another identity, another table of its name. */
  fingerprint: string;
}

interface Found extends LoggedColumn {
  type: string;
  /** The log tells it of rows that are deleted. */
  told: boolean;
  readable: boolean;
}

/**
 * Looks whether the table is still what the catalog says, and tells of each deleted row which one it was.
 * @throws SchemaChangedError, RetryableError `table_changed` where the catalog has to be brought up to date first,
 * ConfigurationError `replica_identity_missing`.
 */
export async function assertFollowable(session: PgSession, request: ReadRequest): Promise<TableShape> {
  const { name } = request.stream;
  const { found, shape } = await lookAt(session, request);
  const columns = new Map(found.map((column) => [column.name, column]));
  for (const { field } of request.columns) {
    if (factName(field)) continue;
    const column = field.path[0]!;
    const type = columns.get(column)?.type;
    if (type === undefined) throw new SchemaChangedError('column_missing', `${name} has no column ${column} any more`);
    if (type !== field.source_type) {
      throw new SchemaChangedError(
        'column_type_changed',
        `${name}.${column} is ${type} now and was ${field.source_type}`,
      );
    }
  }
  const known = new Set(request.stream.fields.map(({ path }) => path[0]));
  if (found.some((column) => column.readable && !known.has(column.name))) throw changedMeanwhile(name);
  assertIdentity(request, new Set(found.filter(({ told }) => told).map((column) => column.name)));
  return shape;
}

/** The table as it is now, whatever the session's transaction sees. */
export const shapeOf = async (session: PgSession, request: ReadRequest): Promise<TableShape> =>
  (await lookAt(session, request)).shape;

/** Another attempt takes the table as it is by then, by the connection's policy; nothing of this one is kept. */
export const changedMeanwhile = (table: string) =>
  new RetryableError('table_changed', `${table} was changed while it was read: it is looked at again`);

async function lookAt(session: PgSession, request: ReadRequest): Promise<{ found: Found[]; shape: TableShape }> {
  const { namespace, name } = request.stream;
  // Only types of the system are then written without their schema, as in the catalog.
  await session.query("begin read only; set local search_path = ''");
  const { rows } = await session.query(
    `select a.attname, a.atttypid, a.atttypmod, format_type(a.atttypid, a.atttypmod),
            case c.relreplident when 'f' then true when 'd' then a.attnum = any(pk.indkey)
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
  if (rows.length === 0)
    throw new SchemaChangedError('table_missing', `There is no table ${namespace}.${name} any more`);
  const found = rows.map(([column, oid, modifier, type, told, readable]) => ({
    name: column!,
    typeOid: Number(oid),
    typeMod: Number(modifier),
    type: type!,
    told: told === 't',
    readable: readable === 't',
  }));
  return { found, shape: { columns: found, fingerprint: JSON.stringify(rows) } };
}

/** Both tell of a table in the same words. */
export const isAlike = (some: readonly LoggedColumn[], others: readonly LoggedColumn[]): boolean =>
  some.length === others.length &&
  some.every((one, at) => {
    const other = others[at]!;
    // The driver reads numbers of types with a sign.
    return one.name === other.name && one.typeOid >>> 0 === other.typeOid >>> 0 && one.typeMod === other.typeMod;
  });

export const identityMissing = (table: string) =>
  new ConfigurationError(
    'replica_identity_missing',
    `${table} has no primary key, or REPLICA IDENTITY NOTHING: the log does not identify deleted rows. ` +
      'Give it a primary key, or run ALTER TABLE … REPLICA IDENTITY FULL',
  );

/** What the log tells of a row that is deleted or changed. */
function assertIdentity({ stream, primary_key }: ReadRequest, told: ReadonlySet<string>): void {
  if (told.size === 0) throw identityMissing(stream.name);
  const untold = primary_key.map((path) => path[0]!).filter((column) => !told.has(column));
  if (untold.length > 0) {
    throw new ConfigurationError(
      'replica_identity_insufficient',
      `The log lacks ${untold.join(', ')} of deleted rows of ${stream.name}: use ${[...told].join(', ')} as the key, ` +
        'or run ALTER TABLE … REPLICA IDENTITY FULL',
    );
  }
}
