import postgres from 'postgres';

/** Entries of the audit log and their seals can be added and read, and nothing else. */
const APPEND_ONLY = ['audit_events', 'audit_seals'];

/** Schema of the queue, which migrates its tables itself. */
const QUEUE = 'pgboss';

/** A role with the rights that the service needs, and no others. */
export interface ServiceRole {
  name: string;
  /** For a role that is created. Null: the role must exist. */
  password: string | null;
}

/** Whether the role is ready. Without rights nothing has to be looked at. */
async function isGranted(client: postgres.Sql, role: string): Promise<boolean> {
  const [row] = await client`
    select has_table_privilege(rolname, 'installation', 'update') and not has_table_privilege(rolname, 'audit_events', 'delete')
      and exists (select from pg_namespace n where n.nspname = ${QUEUE} and n.nspowner = r.oid) as ready
    from pg_roles r where rolname = ${role}`;
  return row?.ready === true;
}

/**
 * Lets a role run the service on a migrated database: it reads and writes rows, owns the tables of the queue,
 * and changes neither tables nor the audit log. Safe to repeat.
 */
export async function grantServiceRole(
  owner_url: string,
  { name, password }: ServiceRole,
  createQueue: () => Promise<void>,
): Promise<'created' | 'granted' | 'unchanged'> {
  const client = postgres(owner_url, { max: 1, onnotice: () => {}, max_lifetime: null });
  try {
    if (await isGranted(client, name)) return 'unchanged';
    await createQueue();
    return await client.begin(async (tx) => {
      const [present] = await tx`select 1 from pg_roles where rolname = ${name}`;
      if (!present && password !== null)
        await tx.unsafe(`create role ${quoted(name)} login password '${password.replaceAll("'", "''")}'`);
      for (const statement of grants(quoted(name), new URL(owner_url).pathname.slice(1))) await tx.unsafe(statement);
      await giveQueue(tx, name);
      return present ? 'granted' : 'created';
    });
  } finally {
    await client.end({ timeout: 5 });
  }
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

const grants = (role: string, database: string): string[] => [
  `grant connect on database ${quoted(decodeURIComponent(database))} to ${role}`,
  `grant usage on schema public, drizzle to ${role}`,
  `grant select on all tables in schema drizzle to ${role}`,
  `grant select, insert, update, delete on all tables in schema public to ${role}`,
  `revoke update, delete on ${APPEND_ONLY.join(', ')} from ${role}`,
  `grant select, update, usage on all sequences in schema public to ${role}`,
  // Tables of later migrations.
  `alter default privileges in schema public grant select, insert, update, delete on tables to ${role}`,
  `alter default privileges in schema public grant select, update, usage on sequences to ${role}`,
];

/** An owner of tables has to be a member of the role that receives them. Superusers need not. */
async function giveQueue(tx: postgres.TransactionSql, role: string): Promise<void> {
  const [me] = await tx`select rolsuper as super from pg_roles where rolname = current_user`;
  if (!me?.super) await tx.unsafe(`grant ${quoted(role)} to current_user`);
  // So that the service sees the transactions of other roles, behind which readers of events wait.
  else await tx.unsafe(`grant pg_read_all_stats to ${quoted(role)}`);
  const objects = await tx<{ statement: string }[]>`
    select format('alter table %s', c.oid::regclass) as statement from pg_class c
      where c.relnamespace = ${QUEUE}::regnamespace and c.relkind in ('r', 'p', 'v')
    union all select format('alter routine %s', p.oid::regprocedure) from pg_proc p
      where p.pronamespace = ${QUEUE}::regnamespace
    union all select format('alter type %s', t.oid::regtype) from pg_type t
      where t.typnamespace = ${QUEUE}::regnamespace and t.typtype = 'e'
    union all select format('alter schema %I', ${QUEUE}::text)`;
  for (const { statement } of objects) await tx.unsafe(`${statement} owner to ${quoted(role)}`);
}
