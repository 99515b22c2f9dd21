import { and, eq, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { catalogStreams } from '../../db/schema/index.ts';

interface Named {
  name: string | SQLWrapper;
  namespace: string | null | SQLWrapper;
}

/** SQL: the catalog's row is the stream of that name at that source. */
export const isInCatalog = (source_id: string | SQLWrapper, { name, namespace }: Named): SQL | undefined =>
  and(
    eq(catalogStreams.account_connector_id, source_id),
    eq(catalogStreams.name, name),
    sql`${catalogStreams.namespace} is not distinct from ${namespace}`,
  );
