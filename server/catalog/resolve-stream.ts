import { eq, sql } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  catalogStreams,
  type ConnectionRow,
  connectionStreams,
  type StreamRow,
} from '../../db/schema/index.ts';
import type { AnySource, ConnectorContext, StreamSchema } from '../connectors/contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../connectors/contract/errors.ts';
import type { Deps } from '../deps.ts';
import { discoveredStream, isInCatalog, storeStream } from './store.ts';
import { onSide, SideError } from '../connector-runtime/side-error.ts';
import { applyOverrides, type Overrides, withCatalogChoices } from '../pipeline/overrides.ts';
import { changeName, diffStream, type SchemaChange } from '../pipeline/schema-diff.ts';
import { readChanges } from './apply-schema-changes.ts';
import { judge } from '../pipeline/schema-policy.ts';
import { changesText, reviewText } from '../pipeline/schema-summary.ts';

/** The part of a claim that reading a stream needs. */
export interface StreamInUse {
  connection: ConnectionRow;
  stream: StreamRow;
  source: AccountConnectorRow;
}

/** `note`: adds a line to the log of the run. */
type InUse = { deps: Deps; claim: StreamInUse; note(code: string, message: string): void };
type Loaded = { schema: StreamSchema; stream: StreamRow; has_changes: boolean };

/**
 * The claimed stream as `loadStream` returns it, brought up to date with the source before any row is read. The policy
 * of the connection is applied to new fields first: once a cursor or a confirmed log position has passed a row, the
 * values in its new columns are lost.
 * @throws SideError of the source with a SchemaChangedError that names a missing field or key, or a change that waits for
 * a review (`schema_change_unreviewed`). The cursor stays where it is.
 */
export async function loadCurrentStream(
  attempt: InUse,
  source: AnySource,
  ctx: ConnectorContext<unknown>,
): Promise<Loaded> {
  const { deps, claim } = attempt;
  const known = await loadStream(deps, claim);
  const current = await upToDate(attempt, known, async () => source.describe?.(ctx, known.schema, stateOf(claim)));
  await onSide('source', () => refuseUnreviewed(attempt, current));
  return current;
}

const stateOf = ({ stream }: StreamInUse) => (stream.sync_mode === 'incremental' ? stream.state : null);

async function upToDate(
  attempt: InUse,
  known: Awaited<ReturnType<typeof loadStream>>,
  describe: () => Promise<StreamSchema | null | undefined>,
): Promise<Loaded> {
  const { deps, claim } = attempt;
  const { schema, stream, overrides } = known;
  const found = schema.dataset_sql === undefined ? await onSide('source', describe) : undefined;
  if (found === undefined) return known;
  const live = found && applyOverrides(found, overrides);
  const changes = diffStream(schema, live);
  if (changes.length === 0) return withDetails(known, found);
  const broken = changes.filter((change) => judge(change, stream) === 'breaking');
  if (broken.length > 0 || !found) throw new SideError('source', asError(claim.connection, broken));
  attempt.note('schema_changed', `The schema has changed at the source: ${changesText(changes)}`);
  const { details: _, ...stored } = found;
  await deps.db.transaction((tx) => storeStream(tx, claim.source, stored));
  const [row] = await deps.db
    .select({ fields: connectionStreams.fields })
    .from(connectionStreams)
    .where(eq(connectionStreams.id, stream.id));
  return withDetails(await loadStream(deps, { ...claim, stream: { ...claim.stream, ...row } }), found);
}

/** Details change while the schema stays the same, so the catalog does not keep them. */
const withDetails = (known: Loaded, found: StreamSchema | null): Loaded =>
  found?.details ? { ...known, schema: { ...known.schema, details: found.details } } : known;

/** Refuses to read past changes that wait for a review: a user may still accept fields that this run would skip. */
async function refuseUnreviewed({ deps, claim }: InUse, { schema, stream, has_changes }: Loaded): Promise<void> {
  if (!has_changes) return;
  const any = claim.connection.schema_change_policy === 'disable_connection';
  const waiting = (await readChanges(deps.db, claim.connection.id)).filter(
    (change) =>
      change.stream_name === schema.name &&
      change.namespace === schema.namespace &&
      (any || judge(change, stream) === 'breaking'),
  );
  if (waiting.length > 0) throw asError(claim.connection, waiting, 'schema_change_unreviewed');
}

const CODES: Partial<Record<ReturnType<typeof changeName>, string>> = {
  stream_removed: 'table_missing',
  field_removed: 'field_missing',
};

function asError(connection: ConnectionRow, changes: SchemaChange[], code = codeOf(changes)): SchemaChangedError {
  const text = reviewText(changes, connection);
  return new SchemaChangedError(code, text.slice(0, 1).toUpperCase() + text.slice(1));
}

const codeOf = ([first]: SchemaChange[]) => (first && CODES[changeName(first)]) ?? 'incompatible_change';

/**
 * The claimed stream as in the catalog of the source, with overrides applied, and the stream settings of the connection
 * with the defaults that the catalog sets. `has_changes`: some change of the connection's source waits for a review; none
 * does without a connection, as in a preview of settings that no connection has yet.
 * @throws ConfigurationError `unknown_stream`
 */
export async function loadStream(
  deps: Deps,
  { source, stream, connection }: Omit<StreamInUse, 'connection'> & { connection?: ConnectionRow },
): Promise<Loaded & { overrides: Overrides }> {
  const [row] = await deps.db
    .select({
      definition: catalogStreams.definition,
      overrides: catalogStreams.overrides,
      has_changes: sql<boolean>`exists (select from schema_changes where connection_id = ${connection?.id ?? null})`,
    })
    .from(catalogStreams)
    .where(isInCatalog(source.id, stream));
  if (!row) throw new ConfigurationError('unknown_stream', `The source's catalog has no stream ${stream.name}`);
  const catalogued = discoveredStream(row);
  // A connection may replace the stream by its own query.
  const discovered = stream.dataset_sql === null ? catalogued : { ...catalogued, dataset_sql: stream.dataset_sql };
  return {
    schema: applyOverrides(discovered, row.overrides),
    stream: withCatalogChoices(stream, discovered, row.overrides),
    overrides: row.overrides,
    has_changes: row.has_changes,
  };
}
