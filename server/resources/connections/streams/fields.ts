import type { StreamSchema } from '../../../connectors/contract/connector.ts';
import { badRequest } from '../../../platform/errors.ts';
import type { RequestedStreamField, StreamSettings } from './settings.ts';

const same = (a: string[], b: string[]) => a.length === b.length && a.every((part, index) => part === b[index]);
const dotted = (path: string[]) => path.join('.');

export const hasField = (stream: StreamSchema, path: string[]) => stream.fields.some((one) => same(one.path, path));

/**
 * Checks everything in the settings that names a field.
 * @throws ApiError 400, see checkSettings.
 */
export function checkFields(settings: StreamSettings, place: RequestedStreamField): void {
  const { stream, field } = place;
  const refuse = (code: string, key: string, message: string) =>
    badRequest(code, `${stream.name}: ${message}`, { field: `${field}.${key}`, stream_name: stream.name });
  const demand = (key: string, path: string[]) => {
    if (!hasField(stream, path)) throw refuse('unknown_field', key, `there is no field "${dotted(path)}"`);
  };
  if (!place.reverse_etl && (settings.dataset_sql !== null || settings.mapping !== null)) {
    const key = settings.mapping === null ? 'dataset_sql' : 'mapping';
    throw refuse('reverse_etl_only', key, `${key} is for connections from a database into business applications`);
  }
  if (settings.dataset_sql !== null && !place.source.capabilities?.datasets) {
    throw refuse('datasets_unsupported', 'dataset_sql', `${place.source.name} reads no queries`);
  }
  for (const choice of settings.fields) {
    const known = !choice.selected && place.stored?.fields.some((one) => same(one.path, choice.path));
    if (!known) demand('fields', choice.path);
  }
  for (const filter of settings.filters) demand('filters', filter.field.split('.'));
  if (settings.cursor_field) demand('cursor_field', settings.cursor_field);
  for (const path of settings.primary_key ?? []) demand('primary_key', path);
  if (settings.mapping) checkMapping(settings.mapping, stream, refuse);
  else checkSelection(settings, stream, refuse);
}

type Refuse = (code: string, key: string, message: string) => Error;

function checkMapping(mapping: NonNullable<StreamSettings['mapping']>, stream: StreamSchema, refuse: Refuse): void {
  const names = new Set<string>();
  for (const { source_field, destination_field, constant_value } of mapping) {
    const known = constant_value != null || stream.fields.some(({ path }) => dotted(path) === source_field);
    if (!known) throw refuse('unknown_field', 'mapping', `there is no field "${source_field}"`);
    if (names.has(destination_field)) {
      throw refuse('duplicate_destination_column', 'mapping', `two fields are named "${destination_field}"`);
    }
    names.add(destination_field);
  }
}

/** Required columns of the destination must be mapped, and no column twice. */
function checkSelection(settings: StreamSettings, stream: StreamSchema, refuse: Refuse): void {
  const choiceOf = (path: string[]) => settings.fields.find((choice) => same(choice.path, path));
  const arriving = stream.fields.filter((one) => choiceOf(one.path)?.selected !== false);
  for (const path of settings.primary_key ?? []) {
    if (arriving.some((one) => same(one.path, path))) continue;
    throw refuse('primary_key_required', 'fields', `the key field "${dotted(path)}" must be selected`);
  }
  const { cursor_field } = settings;
  if (settings.sync_mode === 'incremental' && cursor_field && !arriving.some((one) => same(one.path, cursor_field))) {
    throw refuse('cursor_required', 'fields', `the cursor field "${dotted(cursor_field)}" must be selected`);
  }
  const names = new Set<string>();
  for (const { path } of arriving) {
    const column = choiceOf(path)?.destination_name ?? dotted(path);
    if (names.has(column)) throw refuse('duplicate_destination_column', 'fields', `two fields are named "${column}"`);
    names.add(column);
  }
}
