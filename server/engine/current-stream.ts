import type { connectionStreams } from '../../db/schema/index.ts';
import type { AnySource, ConnectorContext, StreamSchema } from '../connectors/define.ts';
import { SchemaChangedError } from '../connectors/errors.ts';
import type { Attempt } from './attempt.ts';
import { onSide } from './failures.ts';
import { loadStream } from './load-stream.ts';
import { rediscover } from './order-discovery.ts';
import { applyOverrides } from './overrides.ts';
import { changeName, diffStream, factText, type SchemaChange } from './schema-diff.ts';
import { judge } from './schema-policy.ts';
import { fieldName } from './transfer-plan.ts';

type StreamRow = typeof connectionStreams.$inferSelect;

/**
 * The claimed stream as `loadStream` gives it, with the types that its fields have at the source now. What is new there
 * is left to the discovery that this orders, and so to the connection's policy.
 * @throws SideError of the source with a SchemaChangedError that names what the stream cannot do without.
 */
export async function loadCurrentStream(
  attempt: Attempt,
  source: AnySource,
  ctx: ConnectorContext<unknown>,
): Promise<{ schema: StreamSchema; stream: StreamRow }> {
  const { deps, claim } = attempt;
  const { schema, stream, overrides } = await loadStream(deps, claim);
  if (!source.describe || schema.dataset_sql !== undefined) return { schema, stream };
  const found = await onSide('source', () => source.describe!(ctx, schema));
  const live = found && applyOverrides(found, overrides);
  const changes = diffStream(schema, live);
  if (changes.length === 0) return { schema, stream };
  const broken = changes.filter((change) => judge(change, stream) === 'breaking');
  if (broken.length > 0 || !live) await onSide('source', () => Promise.reject(asError(schema, broken)));
  await rediscover(deps, claim);
  return { schema: withLiveTypes(schema, live!), stream };
}

function withLiveTypes(schema: StreamSchema, live: StreamSchema): StreamSchema {
  const fields = schema.fields.flatMap((field) => live.fields.filter((one) => Bun.deepEquals(one.path, field.path)));
  return { ...schema, fields };
}

const CODES: Partial<Record<ReturnType<typeof changeName>, string>> = {
  stream_removed: 'table_missing',
  field_removed: 'field_missing',
};

function asError({ name }: StreamSchema, changes: SchemaChange[]): SchemaChangedError {
  const [first] = changes;
  const code = (first && CODES[changeName(first)]) ?? 'incompatible_change';
  return new SchemaChangedError(
    code,
    `${name} has changed at the source: ${changes.map(sentence).join('; ')}. Review the changes of the connection`,
  );
}

function sentence({ subject, field_path, before, after }: SchemaChange): string {
  const [old, now] = [factText(before), factText(after)];
  switch (subject) {
    case 'stream':
      return 'it is gone';
    case 'field': {
      const name = fieldName(field_path ?? []);
      return after === null ? `the field ${name} is gone` : `the field ${name} is ${now} and was ${old}`;
    }
    default:
      return `its ${subject === 'cursor' ? 'cursor' : 'primary key'} is ${now ?? 'gone'} and was ${old ?? 'none'}`;
  }
}
