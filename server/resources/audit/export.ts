import { and, asc, sql } from 'drizzle-orm';
import { type AuditEventRow, auditEvents } from '../../../db/schema/index.ts';
import { presentEntry } from '../../api/audit/entry.ts';
import type { Ctx } from '../../api/procedure.ts';
import { scopeOf, selectEntries } from './list.ts';
import type { AuditFilter } from './schema.ts';

const PAGE = 1000;

/** The matching entries as JSON Lines, oldest first, read page by page while the client takes them. */
export async function exportAudit(ctx: Ctx, filter: AuditFilter): Promise<Response> {
  const scope = await scopeOf(ctx, filter);
  const encoder = new TextEncoder();
  let last: AuditEventRow | null = null;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const following: ReturnType<typeof sql> | undefined = last
        ? sql`(${auditEvents.occurred_at}, ${auditEvents.seq}) > (${last.occurred_at}::timestamptz, ${last.seq}::bigint)`
        : undefined;
      const rest = { ...scope, filter: and(scope.filter, following) };
      const rows = await selectEntries(ctx.db, rest, { order: asc, limit: PAGE, offset: 0 });
      if (rows.length > 0) {
        controller.enqueue(encoder.encode(rows.map((row) => `${JSON.stringify(presentEntry(row))}\n`).join('')));
      }
      last = rows.at(-1) ?? null;
      if (rows.length < PAGE) controller.close();
    },
  });
  return new Response(body, {
    headers: {
      'content-type': 'application/x-ndjson',
      'content-disposition': 'attachment; filename="audit-log.jsonl"',
      'cache-control': 'private, no-store',
    },
  });
}
