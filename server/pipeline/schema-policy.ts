import type { ConnectionRow, StreamRow } from '../../db/schema/index.ts';
import type { FieldMapping } from './field-mapping.ts';
import { type FieldFact, type SchemaChange, widens } from './schema-diff.ts';
import { type FieldChoice, fieldName } from './transfer-plan.ts';

type Policy = ConnectionRow['schema_change_policy'];

/** Whether a change concerns a connection, and whether the connection can run without a review. */
export type Verdict = 'none' | 'non_breaking' | 'breaking';

const KEYED: readonly StreamRow['destination_sync_mode'][] = ['append_dedup', 'update', 'soft_delete'];

/** `stream`: the settings, with the overrides of the catalog; undefined for a stream without settings. Pure. */
export function judge(change: SchemaChange, stream: StreamRow | undefined): Verdict {
  const { subject, before, after } = change;
  if (subject === 'stream' && before === null) return stream ? 'none' : 'non_breaking';
  if (!stream?.selected) return 'none';
  switch (subject) {
    case 'stream':
      return 'breaking';
    case 'field':
      return judgeField(change, stream);
    case 'primary_key':
      return KEYED.includes(stream.destination_sync_mode) && Bun.deepEquals(stream.primary_key, before)
        ? 'breaking'
        : 'none';
    case 'cursor':
      return stream.sync_mode === 'incremental' && Bun.deepEquals(stream.cursor_field, before) && after !== before
        ? 'breaking'
        : 'none';
  }
}

function judgeField({ field_path, before, after }: SchemaChange, stream: StreamRow): Verdict {
  const path = field_path ?? [];
  if (before === null) return stream.mapping ? 'none' : 'non_breaking';
  if (!uses(stream, path)) return 'none';
  if (after === null) return 'breaking';
  const [old, now] = [(before as FieldFact).type, (after as FieldFact).type];
  // The stored cursor was compared in an order that texts do not have.
  if (isCursor(stream, path) && now === 'string' && old !== now) return 'breaking';
  const masked = (choiceOf(stream, path)?.masking ?? 'none') !== 'none';
  return masked || widens(old, now) ? 'non_breaking' : 'breaking';
}

const choiceOf = (stream: StreamRow, path: string[]) =>
  (stream.fields as FieldChoice[]).find((choice) => Bun.deepEquals(choice.path, path));

export const isCursor = (stream: Pick<StreamRow, 'sync_mode' | 'cursor_field'>, path: string[]) =>
  stream.sync_mode === 'incremental' && Bun.deepEquals(stream.cursor_field, path);

/** Whether the settings of the stream require the field. Pure. */
export function uses(stream: StreamRow, path: string[]): boolean {
  const name = fieldName(path);
  if ((stream.filters as { field: string }[]).some(({ field }) => field === name)) return true;
  if (isCursor(stream, path)) return true;
  const mapping = stream.mapping as FieldMapping[] | null;
  if (mapping) return mapping.some((one) => one.source_field === name && one.constant_value === null);
  return choiceOf(stream, path)?.selected !== false;
}

/** Whether the policy accepts a non-breaking change at once. Pure. */
export const takesOver = (policy: Policy, { subject }: Pick<SchemaChange, 'subject'>) =>
  policy === 'propagate_fully' || (policy === 'propagate_columns' && subject !== 'stream');

/** The setting of a field that is not loaded until a user selects it. */
export const leftOut = (path: string[]): FieldChoice => ({
  path,
  selected: false,
  destination_name: null,
  destination_type: null,
  masking: 'none',
});

export const isLeftOut = (choice: FieldChoice) => Bun.deepEquals(choice, leftOut(choice.path));
