import type { ConnectorContext, SourceSequence } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { SEQUENCE_USES } from '../connection/sequences.ts';
import { withSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { literal, relation } from '../connection/sql.ts';

type Table = { namespace: string | null; name: string };

/** Values that sessions have cached count as given. @throws ConfigurationError `permission_denied` */
export const findSequences = (
  ctx: ConnectorContext<PostgresSourceConfig>,
  tables: readonly Table[],
): Promise<SourceSequence[]> =>
  withSession(ctx, { phase: 'setup' }, async (session) => {
    if (tables.length === 0) return [];
    const { rows } = await session.query(statementFor(tables));
    const hidden = rows
      .filter(([, , , , readable]) => readable !== 't')
      .map(([schema, name]) => relation(schema!, name!));
    if (hidden.length > 0) {
      throw new ConfigurationError(
        'permission_denied',
        `This user may not read the sequence ${hidden[0]}. Let its owner run: grant select on sequence ${hidden.join(', ')} to ${ctx.config.username}`,
      );
    }
    return rows.map(([namespace, name, increment, last, , columns]) => ({
      namespace: namespace!,
      name: name!,
      increment: increment!,
      last: last ?? null,
      columns: JSON.parse(columns!) as SourceSequence['columns'],
    }));
  });

function statementFor(tables: readonly Table[]): string {
  const names = tables.map(({ namespace, name }) => `(${literal(namespace ?? 'public')}, ${literal(name)})`);
  const schemas = new Set(tables.map(({ namespace }) => literal(namespace ?? 'public')));
  return `
    with uses as (${SEQUENCE_USES}),
    numbered as (
      select u.sequence, n.nspname, c.relname, a.attname
        from uses u join pg_class c on c.oid = u.relation join pg_namespace n on n.oid = c.relnamespace
        join pg_attribute a on a.attrelid = u.relation and a.attnum = u.attribute
       where (n.nspname, c.relname) in (${names.join(', ')}))
    select n.nspname, s.relname, q.seqincrement,
           case when has_sequence_privilege(s.oid, 'select,usage') then pg_sequence_last_value(s.oid) end,
           has_sequence_privilege(s.oid, 'select,usage'),
           (select coalesce(json_agg(json_build_object('namespace', c.nspname, 'table', c.relname, 'column', c.attname)
                                     order by c.nspname, c.relname, c.attname), '[]') from numbered c where c.sequence = s.oid)
      from pg_sequence q join pg_class s on s.oid = q.seqrelid join pg_namespace n on n.oid = s.relnamespace
     where s.oid in (select sequence from numbered)
        or (n.nspname in (${[...schemas].join(', ')}) and s.oid not in (select sequence from uses))
     order by 1, 2`;
}
