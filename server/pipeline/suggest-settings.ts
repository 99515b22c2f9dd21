import type { StreamSchema, SyncMode } from '../connectors/contract/connector.ts';
import { givesChanges } from './stream-defaults.ts';
import { fieldName } from './transfer-plan.ts';

/** How a person should be advised to load a stream, and why. */
export interface SuggestedSettings {
  sync_mode: SyncMode;
  cursor_field: string[] | null;
  primary_key: string[][] | null;
  /** For users, as a sentence without its full stop. */
  reason: string;
}

/**
 * Incremental where a key identifies the rows and a log, the source or a field reports their changes. Clients show the
 * suggestion with its reason and send what the person selects. Settings that a request omits do not follow a field that
 * merely looks like a cursor: nobody has seen then that deleted rows stay in the destination.
 */
export function suggestSettings(stream: StreamSchema): SuggestedSettings {
  const { source_defined_primary_key: primary_key, default_cursor_field, supported_sync_modes } = stream;
  const key = primary_key?.map(fieldName).join(', ');
  const incremental = (reason: string): SuggestedSettings => {
    const cursor_field = stream.change_log === true ? null : default_cursor_field;
    return { sync_mode: 'incremental', cursor_field, primary_key, reason };
  };
  const whole = (reason: string): SuggestedSettings => {
    const sync_mode = supported_sync_modes.includes('full_refresh') ? 'full_refresh' : 'incremental';
    return { sync_mode, cursor_field: sync_mode === 'incremental' ? default_cursor_field : null, primary_key, reason };
  };
  if (!supported_sync_modes.includes('incremental')) return whole('The source can only read all rows');
  if (!key) return whole('Without a primary key, changed rows cannot be merged');
  if (givesChanges(stream, { sync_mode: 'incremental' })) {
    return incremental(`The change log has every insert, update and delete, and ${key} identifies the rows`);
  }
  if (stream.source_defined_cursor) {
    return incremental(`The source reports new and changed rows, and ${key} identifies them`);
  }
  if (!default_cursor_field) return whole('No field shows when a row was changed');
  const cursor = fieldName(default_cursor_field);
  const field = stream.fields.find(({ path }) => fieldName(path) === cursor);
  if (field?.nullable !== false) return whole(`${cursor} can be empty, and changes to such rows would be missed`);
  return incremental(
    `${cursor} grows with each change and ${key} identifies the rows. Rows deleted at the source stay in the destination`,
  );
}
