import type { StreamSchema } from '../../../connectors/contract/connector.ts';
import { changeName, type SchemaChange } from '../../../pipeline/schema-diff.ts';
import { isLeftOut } from '../../../pipeline/schema-policy.ts';
import type { StreamSettings } from '../../../pipeline/stream-check/settings.ts';

export type Decision = 'accept' | 'ignore';

/** Settings of a stream after the review. */
export function reviewedSettings(
  settings: StreamSettings,
  about: { changes: SchemaChange[]; decision: Decision; schema: StreamSchema | undefined },
): StreamSettings {
  const { changes, decision, schema } = about;
  const result = { ...settings };
  for (const change of changes) {
    const path = change.field_path ?? [];
    const isField = (other: string[] | null) => Bun.deepEquals(other, path);
    switch (changeName(change)) {
      case 'stream_removed':
        result.selected = false;
        break;
      case 'field_added':
        if (decision === 'accept') {
          result.fields = result.fields.filter((choice) => !(isField(choice.path) && isLeftOut(choice)));
        }
        break;
      case 'field_removed':
        result.fields = result.fields.flatMap((choice) => (isField(choice.path) ? remembered(choice) : [choice]));
        if (decision === 'ignore') break;
        if (isField(result.cursor_field)) result.cursor_field = schema?.default_cursor_field ?? null;
        if (result.primary_key?.some(isField)) result.primary_key = schema?.source_defined_primary_key ?? null;
        break;
      case 'primary_key_changed':
        if (decision === 'accept') result.primary_key = change.after as string[][] | null;
        break;
      case 'cursor_changed':
        if (decision === 'accept') result.cursor_field = change.after as string[] | null;
        break;
      default:
    }
  }
  return result;
}

/** Keeps masked and excluded fields: if such a field returns, it must not be loaded in plain text. */
const remembered = (choice: StreamSettings['fields'][number]) =>
  choice.masking === 'none' && choice.selected ? [] : [{ ...choice, selected: false }];
