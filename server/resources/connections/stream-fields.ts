import type { StreamSchema } from '../../connectors/define.ts';
import { badRequest } from '../../lib/errors.ts';
import type { StreamPlace, StreamSettings } from './stream-settings.ts';

const same = (a: string[], b: string[]) => a.length === b.length && a.every((part, index) => part === b[index]);
const dotted = (path: string[]) => path.join('.');

export const hasField = (stream: StreamSchema, path: string[]) => stream.fields.some((one) => same(one.path, path));

/**
 * Checks everything in the settings that names a field.
 * @throws ApiError 400, see checkSettings.
 */
export function checkFields(settings: StreamSettings, { stream, field }: StreamPlace): void {
  const refuse = (code: string, key: string, message: string) =>
    badRequest(code, `${stream.name}: ${message}`, { field: `${field}.${key}`, stream_name: stream.name });
  const demand = (key: string, path: string[]) => {
    if (!hasField(stream, path)) throw refuse('unknown_field', key, `there is no field "${dotted(path)}"`);
  };
  if (settings.dataset_sql !== null || settings.mapping !== null) {
    const key = settings.mapping === null ? 'dataset_sql' : 'mapping';
    throw refuse('reverse_etl_only', key, `${key} is for connections into business applications`);
  }
  for (const choice of settings.fields) {
    demand('fields', choice.path);
    if (choice.masking === 'encrypt') throw refuse('unsupported_masking', 'fields', 'encrypt is not available');
  }
  for (const filter of settings.filters) demand('filters', filter.field.split('.'));
  if (settings.cursor_field) demand('cursor_field', settings.cursor_field);
  for (const path of settings.primary_key ?? []) demand('primary_key', path);
  checkSelection(settings, stream, refuse);
}

type Refuse = (code: string, key: string, message: string) => Error;

/** What the destination needs must arrive there, and each column once. */
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
