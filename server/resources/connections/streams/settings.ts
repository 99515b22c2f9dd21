import type { AnyDestination, StreamSchema } from '../../../connectors/contract/connector.ts';
import { bestDestinationMode } from '../../../pipeline/stream-defaults.ts';
import { isPair, type StreamSettings } from '../../../pipeline/stream-check/settings.ts';
import type { ConnectionStreamRequest } from './schema.ts';

/**
 * Merges a request into the current settings (the stream's own, or the defaults). When the request sets one of the two
 * modes and the other does not fit it, the other changes, too.
 */
export function mergeSettings(
  base: StreamSettings,
  request: ConnectionStreamRequest | null,
  place: { stream: StreamSchema; destination: AnyDestination },
): StreamSettings {
  const { name: _name, namespace: _namespace, ...wanted } = request ?? { name: '' };
  const given = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
  const merged: StreamSettings = { ...base, ...given };
  const keyed = merged.primary_key !== null || place.stream.source_defined_primary_key !== null;
  if (!isPair(merged, place.destination)) {
    if (!wanted.destination_sync_mode) {
      const reading = { stream: place.stream, sync_mode: merged.sync_mode, keyed };
      merged.destination_sync_mode = bestDestinationMode(reading, place.destination);
    } else if (!wanted.sync_mode) {
      merged.sync_mode = merged.sync_mode === 'incremental' ? 'full_refresh' : 'incremental';
    }
  }
  if (merged.sync_mode === 'incremental') merged.cursor_field ??= place.stream.default_cursor_field;
  merged.primary_key ??= place.stream.source_defined_primary_key;
  if (merged.mapping?.length === 0) merged.mapping = null;
  return merged;
}
