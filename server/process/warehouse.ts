import { sql } from 'drizzle-orm';
import type { EmbeddedPostgres } from '../../db/embedded.ts';
import type { Db } from '../../db/types.ts';

/** Updates account connectors that use the warehouse if the embedded server had to move to another port. */
export async function followWarehouse(db: Db, server: EmbeddedPostgres): Promise<void> {
  const { previousPort, port, warehouse } = server;
  if (previousPort === null || previousPort === port) return;
  const before = {
    host: warehouse.host,
    port: previousPort,
    database: warehouse.database,
    username: warehouse.username,
  };
  await db.execute(sql`
    update account_connectors
    set parameters = parameters || jsonb_build_object('port', ${port}::integer), updated_at = now()
    where connector_name = 'postgres' and parameters @> ${JSON.stringify(before)}::text::jsonb`);
}
