import type { ReadRequest } from '../define.ts';
import { ConfigurationError, SchemaChangedError } from '../errors.ts';
import { factName } from './cdc-fields.ts';
import type { PgSession } from './session.ts';
import { literal } from './sql.ts';

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

/**
 * Looks whether the table is still what the catalog says, and tells of each deleted row which one it was.
 * @throws SchemaChangedError, ConfigurationError `replica_identity_missing`.
 */
export async function assertFollowable(session: PgSession, request: ReadRequest): Promise<void> {
  const { namespace, name } = request.stream;
  // Only types of the system are then written without their schema, as in the catalog.
  await session.query("begin read only; set local search_path = ''");
  const { rows } = await session.query(
    `select a.attname, format_type(a.atttypid, a.atttypmod), c.relreplident,
            case c.relreplident when 'f' then true when 'd' then a.attnum = any(pk.indkey)
                                when 'i' then a.attnum = any(ri.indkey) else false end
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       left join pg_index pk on pk.indrelid = c.oid and pk.indisprimary
       left join pg_index ri on ri.indrelid = c.oid and ri.indisreplident
      where n.nspname = ${literal(namespace ?? '')} and c.relname = ${literal(name)}`,
  );
  await session.query('commit');
  if (rows.length === 0)
    throw new SchemaChangedError('table_missing', `There is no table ${namespace}.${name} any more`);
  const columns = new Map(rows.map(([column, type]) => [column!, type!]));
  for (const { field } of request.columns) {
    if (factName(field)) continue;
    const column = field.path[0]!;
    const type = columns.get(column);
    if (type === undefined) throw new SchemaChangedError('column_missing', `${name} has no column ${column} any more`);
    if (type !== field.source_type) {
      throw new SchemaChangedError(
        'column_type_changed',
        `${name}.${column} is ${type} now and was ${field.source_type}`,
      );
    }
  }
  assertIdentity(request, new Set(rows.filter((row) => row[3] === 't').map(([column]) => column!)));
}

/** What the log tells of a row that is deleted or changed. */
function assertIdentity({ stream, primary_key }: ReadRequest, told: ReadonlySet<string>): void {
  if (told.size === 0) {
    throw new ConfigurationError(
      'replica_identity_missing',
      `${stream.name} has no primary key, or REPLICA IDENTITY NOTHING: the log does not tell which row is deleted. ` +
        'Give it a primary key, or run ALTER TABLE … REPLICA IDENTITY FULL',
    );
  }
  const untold = primary_key.map((path) => path[0]!).filter((column) => !told.has(column));
  if (untold.length > 0) {
    throw new ConfigurationError(
      'replica_identity_insufficient',
      `The log does not tell ${untold.join(', ')} of rows of ${stream.name} that are deleted: take ${[...told].join(', ')} as the key, ` +
        'or run ALTER TABLE … REPLICA IDENTITY FULL',
    );
  }
}
