import { sql } from 'drizzle-orm';
import type { Db } from '../../db/types.ts';
import { ALL_JOBS } from './jobs.ts';

/** What waits in one queue, and what workers hold. */
export interface QueueDepth {
  queue: string;
  /** Jobs that a free worker would take now. */
  due: number;
  /** Jobs that begin later, such as retries. */
  planned: number;
  active: number;
  oldest_due_seconds: number;
}

/** The depth of each queue, also of empty ones. */
export async function queueDepths(db: Db): Promise<QueueDepth[]> {
  const rows = await db.execute<QueueDepth & Record<string, unknown>>(sql`
    select name as queue,
      count(*) filter (where state < 'active' and start_after <= now())::int as due,
      count(*) filter (where state < 'active' and start_after > now())::int as planned,
      count(*) filter (where state = 'active')::int as active,
      coalesce(extract(epoch from now() - min(start_after) filter (where state < 'active' and start_after <= now())), 0)::float
        as oldest_due_seconds
    from pgboss.job where state <= 'active' group by name`);
  return ALL_JOBS.map(
    ({ name }) =>
      rows.find(({ queue }) => queue === name) ?? { queue: name, due: 0, planned: 0, active: 0, oldest_due_seconds: 0 },
  );
}
