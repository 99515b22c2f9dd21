import type { VerificationRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { emit, SYSTEM_ACTOR } from './emit.ts';
import { connectionFacts } from './run-events.ts';

/** Emits how a verification has ended. */
export async function emitVerificationEvent(db: Db, row: VerificationRow): Promise<void> {
  const facts = await connectionFacts(db, row.connection_id);
  const different = row.streams.filter(({ status }) => status === 'different');
  const rows = different.reduce((sum, one) => sum + one.missing + one.extra + one.different, 0);
  const failed = row.status === 'failed';
  const found = row.error?.message ?? `${rows} rows differ in ${different.map((one) => one.stream_name).join(', ')}`;
  await emit(db, {
    account_id: row.account_id,
    event: failed ? 'verification_failed' : 'verification_succeeded',
    actor: SYSTEM_ACTOR,
    resource: { type: 'verification', id: row.id, name: facts.connection_name },
    summary: `${failed ? `Verification failed: ${found}` : 'Verification succeeded'} (${facts.connection_name})`,
    connection_id: row.connection_id,
    ...(row.connection_run_id !== null && { connection_run_id: row.connection_run_id }),
    payload: {
      ...facts,
      connection_run_id: row.connection_run_id,
      verification_id: row.id,
      streams_total: row.streams.length,
      streams_failed: different.length,
      streams_different: different.map((one) => one.stream_name),
      rows_different: rows,
      error_code: row.error?.code ?? null,
      error_message: row.error?.message ?? null,
    },
  });
}
