import { z } from 'zod';
import { AUDIT_KINDS, AUDIT_OUTCOMES } from '../../../db/schema/closed-sets.ts';
import { count, idInBody, moment, whole } from '../../api/wire-types.ts';

/** Which entries of the audit log. */
export const AuditFilter = z.object({
  kind: z.enum(AUDIT_KINDS).optional(),
  action: z.string().max(200).optional().meta({ description: 'Such as `connections.update`, or `connections.*`.' }),
  outcome: z.enum(AUDIT_OUTCOMES).optional(),
  actor: idInBody().optional().meta({ description: 'Id of a user.' }),
  resource_id: z.string().max(64).optional().meta({ description: 'Id of a connection, user, key or other resource.' }),
  address: z.string().max(100).optional(),
  request_id: z.string().max(128).optional(),
  from: moment().optional().meta({ description: 'Only entries at or after this time.' }),
  to: moment().optional().meta({ description: 'Only entries before this time.' }),
});
export type AuditFilter = z.infer<typeof AuditFilter>;

const entryId = () => z.string().regex(/^\d{1,15}$/, 'Should be the id of an entry');

export const AuditQuery = AuditFilter.extend({
  limit: z.int().min(1).max(1000).default(100).meta({ description: 'Maximum number of entries.' }),
  offset: z.int().min(0).max(100_000).default(0).meta({ description: 'Number of entries to skip.' }),
  after: entryId()
    .optional()
    .meta({
      description:
        'The id of an entry: returns the entries after it, oldest first. Repeated with the id of the last entry ' +
        'received, it misses none. An entry appears once all that began before it have been stored.',
    }),
});
export type AuditQuery = z.infer<typeof AuditQuery>;

export const VerifyAuditRequest = z
  .strictObject({
    anchor: z
      .strictObject({ seal: z.int().min(1), hash: z.string().regex(/^[0-9a-f]{64}$/) })
      .nullable()
      .default(null)
      .meta({ description: 'The head of an earlier verification, or of a line of the log.' }),
  })
  .meta({ id: 'VerifyAuditRequest', examples: [{ anchor: null }] });

export const AuditVerificationSchema = z
  .object({
    is_intact: z.boolean(),
    seals: count(),
    entries: count(),
    unsealed: count().meta({ description: 'Entries of the last seconds, which are not sealed yet.' }),
    head: z.object({ seal: whole(), hash: z.string() }).nullable().meta({ description: 'The last seal.' }),
    problems: z.array(
      z.object({
        seal: whole().nullable(),
        first_entry: z.string(),
        last_entry: z.string(),
        problem: z.enum(['seal_missing', 'seal_forged', 'entries_changed', 'entries_added', 'anchor_differs']),
      }),
    ),
  })
  .meta({ id: 'AuditVerificationSchema' });
