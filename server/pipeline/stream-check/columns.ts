import { DELETED_AT } from '../../connectors/contract/changes.ts';
import type { AnyDestination, Field, NameRules } from '../../connectors/contract/connector.ts';
import { nameProblem } from '../../connectors/contract/names.ts';
import { effectiveFields, incompatibility } from '../overrides.ts';
import { type FieldChoice, fieldName } from '../transfer-plan.ts';
import type { SettingFinding } from './finding.ts';
import type { StreamContext, StreamSettings } from './settings.ts';

/** A field of the source as it is written, and where the request sets it. */
export interface WrittenField {
  field: Field;
  choice: FieldChoice;
  /** Its place in the settings of the stream; null: only the catalog sets it. */
  index: number | null;
}

/** The selected fields of a stream, with the overrides of the catalog. */
export function writtenFields(
  { fields }: StreamSettings,
  { stream, overrides }: Pick<StreamContext, 'stream' | 'overrides'>,
): WrittenField[] {
  const choices = new Map(effectiveFields(fields, stream.fields, overrides).map((one) => [fieldName(one.path), one]));
  const indexes = new Map(fields.map(({ path }, index) => [fieldName(path), index]));
  return stream.fields.flatMap((field) => {
    const name = fieldName(field.path);
    const choice = choices.get(name) ?? { ...PLAIN, path: field.path };
    return choice.selected ? [{ field, choice, index: indexes.get(name) ?? null }] : [];
  });
}

const PLAIN = { selected: true, destination_name: null, destination_type: null, masking: 'none' } as const;

/** Where a key of a field is set. */
export const placeOf = ({ index }: WrittenField, key: keyof FieldChoice): SettingFinding['place'] =>
  index === null ? ['fields'] : ['fields', index, key];

/** A field that is listed twice has settings of which one would be lost. */
export function checkDuplicateFields({ fields }: StreamSettings): SettingFinding[] {
  const first = new Map(fields.map(({ path }, index) => [fieldName(path), index] as const).toReversed());
  return fields.flatMap(({ path }, index): SettingFinding[] => {
    const name = fieldName(path);
    if (first.get(name) === index) return [];
    const message = `the field "${name}" is listed twice. Keep one of the entries`;
    return [{ code: 'duplicate_field', message, place: ['fields', index, 'path'] }];
  });
}

/** Types that the conversion does not have. A mapping decides on its types itself. */
export function checkTypes({ mapping }: StreamSettings, written: readonly WrittenField[]): SettingFinding[] {
  if (mapping) return [];
  return written.flatMap((one): SettingFinding[] => {
    const { field, choice } = one;
    const type = choice.destination_type;
    // A mask is written as string, whatever the type.
    const reason = type !== null && choice.masking === 'none' ? incompatibility(field, { type }) : null;
    if (reason === null) return [];
    const message = `"${fieldName(field.path)}": ${reason}`;
    return [{ code: 'type_incompatible', message, place: placeOf(one, 'destination_type') }];
  });
}

/** Columns that the destination could not tell apart, or could not create. */
export function checkColumns(
  settings: StreamSettings,
  written: readonly WrittenField[],
  destination: AnyDestination,
): SettingFinding[] {
  const columns = settings.mapping
    ? settings.mapping.map(({ destination_field }, index) => {
        return { name: destination_field, place: ['mapping', index, 'destination_field'] };
      })
    : written.map((one) => {
        const name = one.choice.destination_name ?? fieldName(one.field.path);
        return { name, place: placeOf(one, 'destination_name') };
      });
  const rules = namesOf(destination);
  // soft_delete adds this column to the table.
  const seen = new Map(settings.destination_sync_mode === 'soft_delete' ? [[rules.fold(DELETED_AT), DELETED_AT]] : []);
  const findings: SettingFinding[] = [];
  for (const { name, place } of columns) {
    const problem = nameProblem(rules, 'column', name);
    const other = seen.get(rules.fold(name));
    seen.set(rules.fold(name), name);
    if (problem) findings.push({ ...problem, place });
    else if (other !== undefined) {
      const message =
        other === name
          ? `two columns are named "${name}". Rename one of them`
          : `${rules.product} does not distinguish the columns "${other}" and "${name}". Rename one of them`;
      findings.push({ code: 'duplicate_destination_column', message, place });
    }
  }
  return findings;
}

/** How the destination names tables and columns. Without rules of its own, names differ as they are written. */
export const namesOf = (destination: AnyDestination): NameRules =>
  destination.names ?? { product: destination.display_name, max: null, invalid: NEVER, fold: (name) => name };

const NEVER = /(?!)/;
