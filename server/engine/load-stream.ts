import { catalogStreams, type connectionStreams } from '../../db/schema/index.ts';
import type { StreamSchema } from '../connectors/define.ts';
import { ConfigurationError } from '../connectors/errors.ts';
import type { Deps } from '../deps.ts';
import { isInCatalog } from './catalog-place.ts';
import type { Claim } from './claims.ts';
import { applyOverrides, type Overrides, withCatalogChoices } from './overrides.ts';

/**
 * The claimed stream as the source's catalog has it, with the overrides of its users, and the connection's settings
 * with what the catalog chooses for them.
 * @throws ConfigurationError `unknown_stream`
 */
export async function loadStream(
  deps: Deps,
  { source, stream }: Pick<Claim, 'source' | 'stream'>,
): Promise<{ schema: StreamSchema; stream: typeof connectionStreams.$inferSelect; overrides: Overrides }> {
  const [row] = await deps.db
    .select({ definition: catalogStreams.definition, overrides: catalogStreams.overrides })
    .from(catalogStreams)
    .where(isInCatalog(source.id, stream));
  if (!row) throw new ConfigurationError('unknown_stream', `The source's catalog has no stream ${stream.name}`);
  const catalogued = row.definition as unknown as StreamSchema;
  // A connection may read a query of its own in the stream's place.
  const discovered = stream.dataset_sql === null ? catalogued : { ...catalogued, dataset_sql: stream.dataset_sql };
  return {
    schema: applyOverrides(discovered, row.overrides),
    stream: withCatalogChoices(stream, discovered, row.overrides),
    overrides: row.overrides,
  };
}
