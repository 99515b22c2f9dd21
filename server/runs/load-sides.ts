import { inArray } from 'drizzle-orm';
import { type AccountConnectorRow, accountConnectors, type ConnectionRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';

/** Source and destination of a connection, as they are stored now. */
export async function loadSides(
  db: Db,
  { id, source_id, destination_id }: Pick<ConnectionRow, 'id' | 'source_id' | 'destination_id'>,
): Promise<{ source: AccountConnectorRow; destination: AccountConnectorRow }> {
  const both = await db
    .select()
    .from(accountConnectors)
    .where(inArray(accountConnectors.id, [source_id, destination_id]));
  const source = both.find((row) => row.id === source_id);
  const destination = both.find((row) => row.id === destination_id);
  if (!source || !destination) throw new Error(`source or destination of connection ${id} does not exist`);
  return { source, destination };
}
