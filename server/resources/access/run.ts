import { and, eq, isNull } from 'drizzle-orm';
import { connectionRuns, connections, type RunRow } from '../../../db/schema/index.ts';
import { notFound } from '../../platform/errors.ts';
import { type Ctx, requirePermission } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';

export interface RunKey {
  connection_run_id: string;
  /** When given, the run must be one of this connection. */
  connection_id?: string;
  /** Searches all accounts; needs the permission `cross_account.read`. */
  cross_account?: boolean;
}

/**
 * A run of a connection that has not been deleted.
 * @throws ApiError 404; 403 for `cross_account` without `cross_account.read`.
 */
export async function findRun(ctx: Pick<Ctx, 'db' | 'principal'>, key: RunKey): Promise<RunRow> {
  if (key.cross_account) requirePermission(ctx, 'cross_account.read');
  const account = key.cross_account ? undefined : eq(connections.account_id, ctx.principal.account_id);
  if (key.connection_id !== undefined) await requireConnection(ctx, key.connection_id, account);
  const [found] = isId(key.connection_run_id)
    ? await ctx.db
        .select({ run: connectionRuns })
        .from(connectionRuns)
        .innerJoin(connections, eq(connections.id, connectionRuns.connection_id))
        .where(
          and(
            eq(connectionRuns.id, key.connection_run_id),
            key.connection_id === undefined ? undefined : eq(connectionRuns.connection_id, key.connection_id),
            isNull(connections.deleted_at),
            account,
          ),
        )
    : [];
  if (!found) throw notFound('Connection run');
  return found.run;
}

async function requireConnection(
  ctx: Pick<Ctx, 'db'>,
  id: string,
  account: ReturnType<typeof eq> | undefined,
): Promise<void> {
  const known = isId(id)
    ? await ctx.db
        .select({ id: connections.id })
        .from(connections)
        .where(and(eq(connections.id, id), isNull(connections.deleted_at), account))
    : [];
  if (known.length === 0) throw notFound('Connection');
}
