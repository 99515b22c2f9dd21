import type { usageLedger } from '../../db/schema/index.ts';

/** Credits used today by a connection that no longer exists. */
export const ledgerEntry = (account_id: string, credits: number): typeof usageLedger.$inferInsert => ({
  account_id,
  connection_id: Bun.randomUUIDv7(),
  connection_run_id: Bun.randomUUIDv7(),
  stream_run_id: Bun.randomUUIDv7(),
  attempt: 1,
  day: new Date().toISOString().slice(0, 10),
  kind: 'elt',
  stream_name: 'stream_1',
  rows_free: 0,
  rows_paid: credits,
  credits_used: credits,
  credits_free: 0,
  bytes_loaded: 0,
});
