import type { ConnectorContext, SourceSequence } from '../../contract/connector.ts';
import { withSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { literal } from '../connection/sql.ts';

/** The AUTO_INCREMENT columns of the tables. */
export const findSequences = (
  ctx: ConnectorContext<MysqlSourceConfig>,
  tables: readonly { namespace: string | null; name: string }[],
): Promise<SourceSequence[]> =>
  withSession(ctx, { phase: 'setup' }, async (session) => {
    if (tables.length === 0) return [];
    const names = tables.map(({ name }) => literal(name)).join(', ');
    const { rows } = await session.query(
      `select c.table_name, c.column_name, cast(t.auto_increment - 1 as char)
         from information_schema.columns c join information_schema.tables t
           on t.table_schema = c.table_schema and t.table_name = c.table_name
        where c.table_schema = ${literal(ctx.config.database)} and c.table_name in (${names})
          and c.extra like '%auto_increment%'
        order by c.table_name`,
    );
    return rows.map(([table, column, last]) => {
      const of = tables.find(({ name }) => name === table);
      return {
        namespace: of?.namespace ?? null,
        name: `${table}_${column}_seq`,
        columns: [{ namespace: of?.namespace ?? null, table: table!, column: column! }],
        last: last === '0' ? null : (last ?? null),
        increment: '1',
      };
    });
  });
