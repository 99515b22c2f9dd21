import { eq } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  type ConnectionRow,
  catalogStreams,
  connectionStreams,
  type StreamRow,
} from '../../db/schema/index.ts';
import type { AnySource, ConnectorContext, StreamSchema } from '../connectors/contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../connectors/contract/errors.ts';
import type { Deps } from '../deps.ts';
import { isInCatalog, storeStream } from './store.ts';
import { onSide, SideError } from '../connector-runtime/side-error.ts';
import { applyOverrides, type Overrides, withCatalogChoices } from '../pipeline/overrides.ts';
import { changeName, diffStream, factText, type SchemaChange } from '../pipeline/schema-diff.ts';
import { readChanges } from './apply-schema-changes.ts';
import { judge } from '../pipeline/schema-policy.ts';
import { fieldName } from '../pipeline/transfer-plan.ts';

/** What a stream is read with: the claim of an attempt has these, among others. */
export interface StreamInUse {
  connection: ConnectionRow;
  stream: StreamRow;
  source: AccountConnectorRow;
}

type InUse = { deps: Deps; claim: StreamInUse };
type Loaded = { schema: StreamSchema; stream: StreamRow };

/**
 * The claimed stream as `loadStream` gives it, brought up to date with the source before anything is read: what is new
 * there goes the way of the connection's policy first, so that no value is passed over by a cursor or an
 * acknowledgement before its column is taken over.
 * @throws SideError of the source with a SchemaChangedError that names what the stream cannot do without, or what has to
 * be reviewed first (`schema_change_unreviewed`): the stream stays where it is.
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
  { deps, claim }: InUse,
  { schema, stream, overrides }: Awaited<ReturnType<typeof loadStream>>,
  describe: () => Promise<StreamSchema | null | undefined>,
): Promise<Loaded> {
  const found = schema.dataset_sql === undefined ? await onSide('source', describe) : undefined;
  if (found === undefined) return { schema, stream };
  const live = found && applyOverrides(found, overrides);
  const changes = diffStream(schema, live);
  if (changes.length === 0) return { schema, stream };
  const broken = changes.filter((change) => judge(change, stream) === 'breaking');
  if (broken.length > 0 || !found) throw new SideError('source', asError(schema, broken));
  await deps.db.transaction((tx) => storeStream(tx, claim.source, found));
  const [row] = await deps.db
    .select({ fields: connectionStreams.fields })
    .from(connectionStreams)
    .where(eq(connectionStreams.id, stream.id));
  return loadStream(deps, { source: claim.source, stream: { ...claim.stream, ...row } });
}

/** Changes that a user has yet to decide about: a run that went on would leave behind what he may want. */
async function refuseUnreviewed({ deps, claim }: InUse, { schema, stream }: Loaded): Promise<void> {
  const any = claim.connection.schema_change_policy === 'disable_connection';
  const waiting = (await readChanges(deps.db, claim.connection.id)).filter(
    (change) =>
      change.stream_name === schema.name &&
      change.namespace === schema.namespace &&
      (any || judge(change, stream) === 'breaking'),
  );
  if (waiting.length > 0) throw asError(schema, waiting, 'schema_change_unreviewed');
}

const CODES: Partial<Record<ReturnType<typeof changeName>, string>> = {
  stream_removed: 'table_missing',
  field_removed: 'field_missing',
};

function asError({ name }: StreamSchema, changes: SchemaChange[], code = codeOf(changes)): SchemaChangedError {
  return new SchemaChangedError(
    code,
    `${name} has changed at the source: ${changes.map(sentence).join('; ')}. Review the changes of the connection`,
  );
}

const codeOf = ([first]: SchemaChange[]) => (first && CODES[changeName(first)]) ?? 'incompatible_change';

function sentence({ subject, field_path, before, after }: SchemaChange): string {
  const [old, now] = [factText(before), factText(after)];
  switch (subject) {
    case 'stream':
      return 'it is gone';
    case 'field': {
      const name = fieldName(field_path ?? []);
      if (before === null) return `the field ${name} is new`;
      return after === null ? `the field ${name} is gone` : `the field ${name} is ${now} and was ${old}`;
    }
    default:
      return `its ${subject === 'cursor' ? 'cursor' : 'primary key'} is ${now ?? 'gone'} and was ${old ?? 'none'}`;
  }
}

/**
 * The claimed stream as the source's catalog has it, with the overrides of its users, and the connection's settings
 * with what the catalog chooses for them.
 * @throws ConfigurationError `unknown_stream`
 */
export async function loadStream(
  deps: Deps,
  { source, stream }: Pick<StreamInUse, 'source' | 'stream'>,
): Promise<{ schema: StreamSchema; stream: StreamRow; overrides: Overrides }> {
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
