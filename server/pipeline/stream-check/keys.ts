import type { Field } from '../../connectors/contract/connector.ts';
import { incompatibility } from '../overrides.ts';
import { cursorPath, fieldName, keyPaths } from '../transfer-plan.ts';
import { placeOf, type WrittenField } from './columns.ts';
import type { SettingFinding } from './finding.ts';
import { NEEDS_KEY, type StreamContext, type StreamSettings } from './settings.ts';

/** Keys that merge different rows. */
export function checkKey(
  settings: StreamSettings,
  written: readonly WrittenField[],
  { stream }: Pick<StreamContext, 'stream'>,
): SettingFinding[] {
  if (!NEEDS_KEY.includes(settings.destination_sync_mode)) return [];
  const constant = (settings.mapping ?? []).flatMap(({ is_match_key, constant_value, destination_field }, index) =>
    is_match_key && constant_value !== null ? [{ destination_field, index }] : [],
  );
  const keys = settings.mapping
    ? settings.mapping.filter((one) => one.is_match_key && one.constant_value === null).map((one) => one.source_field)
    : keyPaths(stream, settings).map(fieldName);
  return [
    ...constant.map(({ destination_field, index }): SettingFinding => {
      const message = `the match key "${destination_field}" has the same value in every row, so only one row would remain`;
      return { code: 'unfit_key', message, place: ['mapping', index, 'constant_value'] };
    }),
    ...written.filter(({ field }) => keys.includes(fieldName(field.path))).flatMap(checkKeyField),
  ];
}

function checkKeyField(one: WrittenField): SettingFinding[] {
  const { field, choice } = one;
  const name = fieldName(field.path);
  const reason = incompatibility(field, { is_primary_key: true });
  if (reason !== null) return [{ code: 'unfit_key', message: `"${name}": ${reason}`, place: ['primary_key'] }];
  if (choice.masking !== 'redact') return [];
  const message = `the mask redact gives every row the same key "${name}". Use hash_sha256_salted or encrypt, which keep rows apart`;
  return [{ code: 'unfit_mask', message, place: placeOf(one, 'masking') }];
}

/** Cursors whose order or equality is not that of their values. */
export function checkCursor(
  settings: StreamSettings,
  written: readonly WrittenField[],
  { stream }: Pick<StreamContext, 'stream'>,
): SettingFinding[] {
  const path = settings.sync_mode === 'incremental' ? cursorPath(stream, settings) : null;
  const name = path && fieldName(path);
  const field = stream.fields.find((one) => fieldName(one.path) === name);
  if (!field) return [];
  const reason = stream.source_defined_cursor ? null : unfitness(field);
  if (reason) return [{ code: 'unfit_cursor', message: `"${name}" ${reason}`, place: ['cursor_field'] }];
  const column = written.find((one) => one.field === field);
  if (!column || !NEEDS_KEY.includes(settings.destination_sync_mode)) return [];
  return checkOrder(column, settings.destination_sync_mode);
}

/** Of several rows with one key, a merge keeps the one with the highest cursor, as the destination compares it. */
function checkOrder(column: WrittenField, mode: string): SettingFinding[] {
  const { field, choice } = column;
  const lost = (
    code: 'unfit_mask' | 'unfit_cursor',
    what: string,
    key: 'masking' | 'destination_type',
  ): SettingFinding[] => {
    const message = `${what} of the cursor "${fieldName(field.path)}" hides which row is newer, which ${mode} needs. Write the cursor unchanged, or write by append`;
    return [{ code, message, place: placeOf(column, key) }];
  };
  if (choice.masking !== 'none') return lost('unfit_mask', 'the mask', 'masking');
  const numeric = field.type === 'integer' || field.type === 'number';
  return numeric && choice.destination_type === 'string' ? lost('unfit_cursor', 'the type', 'destination_type') : [];
}

function unfitness(field: Field): string | null {
  if (incompatibility(field, { is_cursor: true })) return `cannot be a cursor: ${field.type} has no order`;
  if (!field.inexact_order) return null;
  return 'cannot be a cursor: its collation treats different texts as equal, so rows would be lost or doubled. Use another field or an exact collation';
}
