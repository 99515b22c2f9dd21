import { eq } from 'drizzle-orm';
import { tasks } from '../../db/schema/index.ts';
import { recordCall } from '../api/audit/record.ts';
import type { Deps } from '../deps.ts';
import { EXPORT_TYPES, type ExportFormat } from '../exports/formats.ts';
import { isSignedExport } from '../exports/link.ts';
import { notFound } from '../platform/errors.ts';
import type { Handler } from './edge.ts';
import { unauthenticatedCall } from './errors.ts';

/** Downloads a metadata export. The signature of the link replaces the API key. */
export const exportFile =
  (deps: Deps): Handler =>
  async (exchange) => {
    const {
      request,
      params: [id = ''],
    } = exchange;
    if (!isSignedExport(deps, id, new URL(request.url).searchParams)) throw notFound('Export');
    const [task] = await deps.db.select().from(tasks).where(eq(tasks.id, id));
    const key = task?.result?.object_key;
    const stored = typeof key === 'string' ? await deps.objects.get(key) : null;
    if (!task || !stored) throw notFound('Export');
    await recordCall(deps.db, unauthenticatedCall(exchange, '/exports/{task_id}'), {
      kind: 'download',
      account_id: task.account_id,
      resource_type: 'task',
      resource_id: id,
    });
    const { content_type, ending } = EXPORT_TYPES[task.parameters.format as ExportFormat];
    return new Response(stored, {
      headers: {
        'content-type': content_type,
        'content-disposition': `attachment; filename="metadata-${id}.${ending}"`,
        'cache-control': 'private, no-store',
      },
    });
  };
