import { and, desc, eq, isNull } from 'drizzle-orm';
import { connections, users, type VerificationRow, verifications } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';
import { notFound } from '../../platform/errors.ts';
import { startVerification, stopVerification } from '../../transfer/verification/start.ts';
import { findConnection, lockConnection } from '../access/connection.ts';
import type { VerificationSchema, VerifyRequest } from './schema.ts';

const LISTED = 100;

export interface VerificationById {
  verification_id: string;
}

/** Queues a verification of a connection. Returns its id. */
export async function verify(
  ctx: Ctx,
  input: { connection_id: string; request: VerifyRequest | null },
): Promise<string> {
  const connection = await lockConnection(ctx, input.connection_id);
  const { stream_names = null, repair = false } = input.request ?? {};
  return startVerification(ctx.db, ctx.deps, {
    connection,
    stream_names,
    repair,
    user_id: ctx.principal.user_id,
  });
}

/** Newest first. */
export async function listVerifications(ctx: Ctx, input: { connection_id: string }): Promise<VerificationSchema[]> {
  const { id } = await findConnection(ctx, input.connection_id);
  const rows = await joined(ctx)
    .where(eq(verifications.connection_id, id))
    .orderBy(desc(verifications.created_at), desc(verifications.id))
    .limit(LISTED);
  return rows.map(present);
}

export const readVerification = async (ctx: Ctx, input: VerificationById): Promise<VerificationSchema> =>
  present(await find(ctx, input));

/** Returns the id of the verification, or null if it had already ended. */
export async function stop(ctx: Ctx, input: VerificationById): Promise<string | null> {
  const { row } = await find(ctx, input);
  return (await stopVerification(ctx.db, row)) ? row.id : null;
}

const joined = ({ db }: Ctx) =>
  db
    .select({ row: verifications, user: { id: users.id, name: users.full_name, email: users.email } })
    .from(verifications)
    .innerJoin(connections, eq(connections.id, verifications.connection_id))
    .leftJoin(users, eq(users.id, verifications.triggered_by));

type Found = Awaited<ReturnType<typeof joined>>[number];

/** @throws ApiError 404 */
async function find(ctx: Ctx, { verification_id }: VerificationById): Promise<Found> {
  const [found] = isId(verification_id)
    ? await joined(ctx).where(
        and(
          eq(verifications.id, verification_id),
          eq(verifications.account_id, ctx.principal.account_id),
          isNull(connections.deleted_at),
        ),
      )
    : [];
  if (!found) throw notFound('Verification');
  return found;
}

function present({ row, user }: { row: VerificationRow; user: Found['user'] }): VerificationSchema {
  const { id, connection_id, connection_run_id, status, stream_names, repair, streams, error } = row;
  const { created_at, started_at, finished_at } = row;
  const times = { created_at, started_at, finished_at };
  return {
    id,
    connection_id,
    connection_run_id,
    status,
    stream_names,
    repair,
    streams,
    error,
    triggered_by: user,
    ...times,
  };
}
