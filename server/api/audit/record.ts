import { sql } from 'drizzle-orm';
import { auditEvents } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Principal } from '../authentication.ts';

/** Where a call came from. Empty for calls within the process. */
export interface Caller {
  request_id: string;
  address: string;
  user_agent: string | null;
}

/** A call in the form that the audit log records. */
export interface AuditedCall {
  caller: Caller;
  /** Null: no valid key or session. */
  principal: Principal | null;
  /** The procedure, such as `connections.update`. */
  action: string;
  /** Whose object a call without a principal is about. */
  about?: { account_id: string; resource_type: string; resource_id: string; resource_name: string };
}

type Entry = typeof auditEvents.$inferInsert;
type Resource = Pick<Entry, 'resource_type' | 'resource_id' | 'details'>;

const MAX_TEXT = 300;

/** The columns that all entries of a call share. */
function factsOf({ caller, principal, action, about }: AuditedCall) {
  return {
    ...about,
    account_id: principal?.account_id ?? about?.account_id ?? null,
    action,
    actor_type: principal ? ('user' as const) : ('anonymous' as const),
    actor_id: principal?.user_id ?? null,
    actor_name: principal?.name ?? null,
    api_key_id: principal?.api_key_id ?? null,
    session_id: principal?.session?.id ?? null,
    address: caller.address || null,
    user_agent: caller.user_agent?.slice(0, MAX_TEXT) ?? null,
    request_id: caller.request_id,
  };
}

/** The setting from which triggers on audited tables take the facts of the call. It ends with the transaction. */
const settingOf = (call: AuditedCall) => sql`set_config('audit.call', ${JSON.stringify(factsOf(call))}, true)`;

/** Attributes the changes of the rest of the transaction to the call. */
export const attribute = async (tx: Db, call: AuditedCall): Promise<void> => {
  await tx.execute(sql`select ${settingOf(call)}`);
};

/** Records an operator's command about an account, and attributes the changes of the rest of the transaction to it. */
export async function attributeOperator(tx: Db, { account_id, action }: { account_id: string; action: string }) {
  const facts = { account_id, action: `operator.${action}`, actor_type: 'system' as const };
  await tx.insert(auditEvents).values({ ...facts, kind: 'call', resource_type: 'account', resource_id: account_id });
  await tx.execute(sql`select set_config('audit.call', ${JSON.stringify(facts)}, true)`);
}

/** Stores the entry of a call. */
export async function recordCall(
  db: Db,
  call: AuditedCall,
  entry: Pick<Entry, 'kind'> & Partial<Entry>,
): Promise<void> {
  await db.insert(auditEvents).values({ ...factsOf(call), ...entry });
}

/** `recordCall` and `attribute` in one statement. The entry is stored if the transaction commits. */
export async function recordAndAttribute(tx: Db, call: AuditedCall, resource: Resource): Promise<void> {
  await tx
    .insert(auditEvents)
    .values({ ...factsOf(call), kind: 'call', ...resource })
    .returning({ attributed: settingOf(call) });
}

/** The same database, with transactions that attribute their changes to the call. */
export function attributing(db: Db, callOf: () => AuditedCall): Db {
  const transaction: Db['transaction'] = (work, config) =>
    db.transaction(async (tx) => {
      await attribute(tx, callOf());
      return work(tx);
    }, config);
  return Object.assign(Object.create(db) as Db, { transaction });
}
