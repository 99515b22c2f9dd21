import { is, or, type SQL, sql } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import * as schema from '../schema/index.ts';

/** A table with rows of accounts. */
export interface OwnedTable {
  table: PgTable;
  name: string;
  columns: { name: string; type: string }[];
  /** The condition for the rows of an account. */
  belongsTo(account_id: string): SQL;
}

/** The audit log outlives what it reports: its ids have no foreign keys. */
export const AUDIT_TABLE = 'audit_events';

/** Tables without rows of accounts: those of the installation, and the seals over the audit log. */
export const INSTALLATION_TABLES = [
  'installation',
  'key_ring',
  'root_keys',
  'audit_unsealed',
  'audit_seals',
  AUDIT_TABLE,
];

const tables: PgTable[] = (Object.values(schema) as unknown[]).filter((one): one is PgTable => is(one, PgTable));

/**
 * The tables with rows of accounts, each behind those that its foreign keys name. Derived from the schema: a row belongs to
 * the account in its column `account_id`, or to that of a row which it refers to.
 */
export function ownedTables(): OwnedTable[] {
  const found = new Map<string, OwnedTable>();
  const visit = (table: PgTable): void => {
    const { name, columns, foreignKeys } = getTableConfig(table);
    if (found.has(name) || INSTALLATION_TABLES.includes(name)) return;
    const parents = foreignKeys.map((key) => key.reference()).filter((key) => key.foreignTable !== table);
    for (const { foreignTable } of parents) visit(foreignTable);
    const belongsTo = (account_id: string): SQL => {
      if (table === schema.accounts) return sql`${schema.accounts.id} = ${account_id}`;
      const own = columns.find((column) => column.name === 'account_id');
      if (own) return sql`${own} = ${account_id}`;
      // Without a condition, rows of all accounts would belong to each.
      if (parents.length === 0) throw new Error(`no column of ${name} leads to an account`);
      const ways = parents.map(({ columns: [from], foreignTable, foreignColumns: [to] }) => {
        const parent = found.get(getTableConfig(foreignTable).name)!;
        return sql`${from} in (select ${to} from ${foreignTable} where ${parent.belongsTo(account_id)})`;
      });
      return or(...ways)!;
    };
    const described = columns.map((column) => ({ name: column.name, type: column.getSQLType() }));
    found.set(name, { table, name, columns: described, belongsTo });
  };
  tables.forEach(visit);
  return [...found.values()];
}

/** The keys of an account's objects: network logs, pictures and exports. */
export const objectKeys = (account_id: string): SQL => sql`
  select object_key as key from network_log_segments where account_id = ${account_id}
  union select avatar_key from users where account_id = ${account_id} and avatar_key is not null
  union select result ->> 'object_key' from tasks
    where account_id = ${account_id} and result ->> 'object_key' is not null order by 1`;
