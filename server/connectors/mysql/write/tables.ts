import { ConfigurationError } from '../../contract/errors.ts';
import type { Dialect } from '../../kits/sql/dialect.ts';
import type { Stage } from '../../kits/sql/stage.ts';
import { addUniqueKey, definitions } from '../../kits/sql/tables.ts';
import type { ExistingTable, PlacedTarget } from '../../kits/sql/target.ts';
import { OTHER_CHARSET } from '../connection/cell-shapes.ts';
import type { MysqlSession } from '../connection/session.ts';
import { columnList, literal, relation } from '../connection/sql.ts';
import type { MysqlTarget } from './target.ts';
import type { Row } from '../connection/result.ts';

export interface MysqlTable extends ExistingTable {
  /** Folded names of columns whose values the server computes. */
  generated: ReadonlySet<string>;
  replacesNull: ReadonlySet<string>;
}

export async function findTable(session: MysqlSession, schema: string, table: string): Promise<MysqlTable | null> {
  const { rows } = await session.query(
    `select t.table_type, t.engine, c.column_name, c.column_type, c.character_set_name,
            c.extra like '% GENERATED%',
            c.extra like '%auto_increment%' or (c.data_type = 'timestamp' and c.is_nullable = 'NO')
       from information_schema.tables t
       join information_schema.columns c on c.table_schema = t.table_schema and c.table_name = t.table_name
      where t.table_schema = ${literal(schema)} and t.table_name = ${literal(table)} order by c.ordinal_position`,
  );
  const [first] = rows;
  if (!first) return null;
  const [kind, engine] = first;
  if (kind !== 'BASE TABLE') {
    throw new ConfigurationError(
      'not_a_table',
      `${schema}.${table} is not a table. Rows can only be written to tables`,
    );
  }
  if (!/^innodb$/i.test(engine ?? '')) {
    throw new ConfigurationError(
      'not_transactional',
      `${schema}.${table} uses the engine ${engine}, which has no transactions. Convert the table to InnoDB`,
    );
  }
  const typeOf = ([, , , type, charset]: Row) =>
    charset && charset !== 'utf8mb4' ? `${type}${OTHER_CHARSET}${charset}` : type!;
  const nameOf = ([, , name]: Row) => name!.toLowerCase();
  return {
    types: new Map(rows.map((row) => [nameOf(row), typeOf(row)])),
    generated: new Set(rows.filter((row) => row[5] === '1').map(nameOf)),
    replacesNull: new Set(rows.filter((row) => row[6] === '1').map(nameOf)),
  };
}

/** The server would ignore their values, with no more than a warning. @throws ConfigurationError `column_is_generated` */
export function refuseGenerated({ table, columns }: PlacedTarget, { generated }: MysqlTable): void {
  const column = columns.find(({ name }) => generated.has(name.toLowerCase()));
  if (!column) return;
  throw new ConfigurationError(
    'column_is_generated',
    `The server computes the column ${column.name} of ${table}, so nothing can be loaded into it. Deselect the field, or give it another name at the destination`,
  );
}

/** Gone with the session. */
export async function createStage(
  { session, dialect }: { session: MysqlSession; dialect: Dialect },
  target: MysqlTarget,
  stage: Pick<Stage, 'relation' | 'sequence' | 'change'>,
): Promise<void> {
  const parts = definitions(dialect, target, target.primary_key);
  parts.push(`${stage.change} text null`, `${stage.sequence} bigint not null auto_increment primary key`);
  await session.query(`drop temporary table if exists ${stage.relation}`);
  await session.query(`create temporary table ${stage.relation} (${parts.join(', ')}) ${dialect.tableOptions}`);
}

/**
 * A merge needs a unique key on exactly the key's columns; an existing table without one gets it.
 * @throws ConfigurationError when several rows have the same key, and for a second unique key: ON DUPLICATE KEY UPDATE
 * would replace rows by that one, too.
 */
export async function ensureUniqueKey(
  db: { session: MysqlSession; dialect: Dialect },
  target: PlacedTarget,
): Promise<void> {
  if (target.mode === 'update') return;
  const { rows } = await db.session.query(
    `select index_name, group_concat(lower(column_name) order by lower(column_name) separator '\\0'), max(sub_part)
       from information_schema.statistics where non_unique = 0
        and table_schema = ${literal(target.schema)} and table_name = ${literal(target.table)} group by index_name`,
  );
  const wanted = target.primary_key.map((name) => name.toLowerCase()).toSorted();
  const isWanted = (columns: string | null | undefined) =>
    columns?.split('\0').toSorted().join('\0') === wanted.join('\0');
  const other = rows.find(([, columns]) => !isWanted(columns));
  if (other) {
    throw new ConfigurationError(
      'other_unique_key',
      `${target.table} has another unique key, ${other[0]}, by which rows would replace others. Drop it, or use its columns as the primary key`,
    );
  }
  if (rows.length > 0) return;
  const table = relation(target.schema, target.table);
  await addUniqueKey(db, target, `alter table ${table} add unique key (${columnList(target.primary_key)})`);
}
