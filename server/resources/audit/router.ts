import { z } from 'zod';
import { verifyAccountAudit } from '../../api/audit/chain.ts';
import { AuditEntry } from '../../api/audit/entry.ts';
import { rest } from '../../api/endpoint.ts';
import { act, router } from '../../api/procedure.ts';
import { exportAudit } from './export.ts';
import { listAudit } from './list.ts';
import { AuditFilter, AuditQuery, AuditVerificationSchema, VerifyAuditRequest } from './schema.ts';

export const auditRouter = router({
  list: act('audit.read')
    .concat(
      rest('GET', '/audit_log', {
        operation_id: 'list_audit_log',
        summary: 'List the entries of the audit log, newest first',
        description: 'With `after`, oldest first from that entry on, for clients that follow the log.',
        addition: true,
        query: AuditQuery,
        errors: [400],
      }),
    )
    .output(z.array(AuditEntry))
    .query(({ ctx, input }) => listAudit(ctx, input)),
  verify: act('audit.read')
    .concat(
      rest('POST', '/audit_log/verify', {
        operation_id: 'verify_audit_log',
        summary: "Check that the account's audit log is complete and unchanged",
        description:
          'Computes the hash chain over the entries of the account again. Problems name seals and their entries. The ' +
          'operator command `verify-audit` checks the whole installation, with entries that belong to no account.',
        addition: true,
        body: VerifyAuditRequest,
      }),
    )
    .output(AuditVerificationSchema)
    .mutation(({ ctx, input }) => verifyAccountAudit(ctx.deps, ctx.principal.account_id, input.anchor)),
});

/** REST only: a file. */
export const auditExportRouter = router({
  export: act('audit.read')
    .concat(
      rest('GET', '/audit_log/export', {
        operation_id: 'export_audit_log',
        summary: 'Download entries of the audit log as JSON Lines, oldest first',
        description: 'Takes the filters of the list. The download is recorded as an entry of its own.',
        addition: true,
        query: AuditFilter,
        produces: { 'application/x-ndjson': 'JSON Lines: each line is one AuditEntry' },
      }),
    )
    .query(({ ctx, input }) => exportAudit(ctx, input)),
});
