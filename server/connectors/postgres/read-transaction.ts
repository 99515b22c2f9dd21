import type { ReadRequest } from '../define.ts';
import { datasetFields } from './datasets.ts';
import type { PgSession } from './session.ts';

/** One snapshot for all statements of a read. */
export const BEGIN = 'begin isolation level repeatable read read only';

/** Begins the transaction of a read. A query of the user's is looked at first: COPY would run several statements. */
export async function begin(session: PgSession, { stream }: ReadRequest): Promise<void> {
  await session.query(BEGIN);
  if (stream.dataset_sql !== undefined) await datasetFields(session, { name: stream.name, sql: stream.dataset_sql });
}
