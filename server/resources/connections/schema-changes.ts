import { z } from 'zod';
import { changeName, factText } from '../../pipeline/schema-diff.ts';
import { readChanges } from '../../catalog/apply-schema-changes.ts';
import type { Ctx } from '../../api/procedure.ts';
import { findConnection } from '../access/connection.ts';

export const ReviewDecision = z
  .strictObject({
    decision: z.enum(['accept', 'ignore']).meta({
      description: '`accept` applies the changes that can be applied; `ignore` continues without them.',
    }),
  })
  .meta({ id: 'ReviewDecision', examples: [{ decision: 'accept' }] });

/** A difference between the source and the connection's settings. */
export const ConnectionSchemaChange = z.object({
  stream_name: z.string(),
  namespace: z.string().nullable(),
  change: z.enum([
    'stream_added',
    'stream_removed',
    'stream_changed',
    'field_added',
    'field_removed',
    'field_type_changed',
    'primary_key_changed',
    'cursor_changed',
  ]),
  field_path: z.array(z.string()).nullable(),
  before: z.string().nullable().meta({ description: 'A type, or the fields of a key.' }),
  after: z.string().nullable(),
  breaking: z.boolean(),
});
export type ConnectionSchemaChange = z.infer<typeof ConnectionSchemaChange>;

/** Changes that need a review, grouped by stream. */
export async function listSchemaChanges(ctx: Ctx, input: { connection_id: string }): Promise<ConnectionSchemaChange[]> {
  const { id } = await findConnection(ctx, input.connection_id);
  const changes = await readChanges(ctx.db, id);
  return changes.map((change) => ({
    stream_name: change.stream_name,
    namespace: change.namespace,
    change: changeName(change),
    field_path: change.field_path,
    before: factText(change.before),
    after: factText(change.after),
    breaking: change.breaking,
  }));
}
