import { z } from 'zod';
import type { AuditEventRow } from '../../../db/schema/index.ts';
import { AUDIT_ACTOR_TYPES, AUDIT_KINDS, AUDIT_OPERATIONS, AUDIT_OUTCOMES } from '../../../db/schema/closed-sets.ts';
import { count, instant } from '../wire-types.ts';

const values = () => z.record(z.string(), z.unknown()).nullable();

/** An entry of the audit log, as the API returns it and as worker logs contain it. */
export const AuditEntry = z
  .object({
    id: z.string().meta({ description: 'A number. Entries that are stored later have higher ones.' }),
    account_id: z.string().nullable().meta({ description: 'Null: the account of the caller is unknown.' }),
    occurred_at: instant(),
    kind: z.enum(AUDIT_KINDS),
    action: z.string().meta({
      description:
        'The procedure, such as `connections.update`; `sign_in` and `sign_out`; the purpose of the use of a secret; the ' +
        'method and path of other requests; `system` for changes of the service itself.',
    }),
    outcome: z.enum(AUDIT_OUTCOMES),
    code: z.string().nullable().meta({ description: 'The error code of a refusal.' }),
    actor: z.object({ type: z.enum(AUDIT_ACTOR_TYPES), id: z.string().nullable(), name: z.string().nullable() }),
    api_key_id: z.string().nullable(),
    session_id: z.string().nullable(),
    address: z.string().nullable(),
    user_agent: z.string().nullable(),
    request_id: z.string().nullable().meta({ description: 'Shared by all entries of one request.' }),
    resource: z
      .object({ type: z.string(), id: z.string(), name: z.string().nullable() })
      .nullable()
      .meta({ description: 'What the entry is about.' }),
    operation: z.enum(AUDIT_OPERATIONS).nullable().meta({ description: 'What a change did to the resource.' }),
    before: values().meta({ description: 'The values that changed. A secret is `set`.' }),
    after: values().meta({ description: 'The values that changed. A changed secret is `changed`.' }),
    details: values().meta({ description: 'Ids in the path of a call; host of the use of a secret.' }),
    count: count().meta({ description: 'How often it occurred: repeated refusals share an entry.' }),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;

export function presentEntry(row: AuditEventRow): AuditEntry {
  const { seq, actor_type, actor_id, actor_name, resource_type, resource_id, resource_name, ...rest } = row;
  return {
    ...rest,
    id: String(seq),
    actor: { type: actor_type, id: actor_id, name: actor_name },
    resource:
      resource_type === null || resource_id === null
        ? null
        : { type: resource_type, id: resource_id, name: resource_name },
  };
}
