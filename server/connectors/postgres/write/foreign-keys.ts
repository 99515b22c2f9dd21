import type { PgSession } from '../connection/session.ts';
import { identifier, relation } from '../connection/sql.ts';
import type { PgTarget } from './target.ts';

/**
 * Lets the foreign keys between these tables be checked at the end of a commit, which holds whole transactions of the
 * source: in between, a row may come before the one that it refers to. In other sessions they are checked as before.
 * @param warn where the user may not change the key
 * @returns the names of the keys of each table, quoted
 */
export async function deferForeignKeys(
  session: PgSession,
  targets: readonly PgTarget[],
  warn: (at: number, code: string, message: string) => void,
): Promise<string[][]> {
  const oids = targets.map(({ existing }) => existing?.oid ?? '0');
  const { rows } = await session.query(
    `select k.conrelid::text, n.nspname, r.relname, k.conname, k.condeferrable, pg_has_role(r.relowner, 'usage')
       from pg_constraint k join pg_class r on r.oid = k.conrelid join pg_namespace n on n.oid = r.relnamespace
      where k.contype = 'f' and k.conparentid = 0 and k.conrelid in (${oids.join(', ')})
        and k.confrelid in (${oids.join(', ')}) order by k.conname`,
  );
  const names: string[][] = targets.map(() => []);
  for (const [oid, schema, table, name, deferrable, isOwner] of rows) {
    const at = oids.indexOf(oid!);
    const change = `alter table ${relation(schema!, table!)} alter constraint ${identifier(name!)} deferrable`;
    if (deferrable === 't' || isOwner === 't') {
      if (deferrable !== 't') await session.query(change);
      names[at]!.push(`${identifier(schema!)}.${identifier(name!)}`);
    } else {
      const problem = `Foreign key ${name} of ${table} is checked after each statement, so a transaction that changes both tables may fail`;
      warn(at, 'foreign_key_not_deferrable', `${problem}. As its owner run: ${change}`);
    }
  }
  return names;
}
