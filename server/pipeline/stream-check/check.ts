import type { StreamRow } from '../../../db/schema/index.ts';
import type { AnyDestination, StreamSchema } from '../../connectors/contract/connector.ts';
import { ConfigurationError } from '../../connectors/contract/errors.ts';
import { checkColumns, checkDuplicateFields, checkTypes, writtenFields } from './columns.ts';
import { checkFilters } from './filters.ts';
import type { SettingFinding } from './finding.ts';
import { checkCursor, checkKey } from './keys.ts';
import { checkReferences } from './references.ts';
import { settingsOf, type StreamContext, type StreamSettings } from './settings.ts';

/**
 * Everything that keeps a stream from moving exactly what its settings say. The same check serves saving, previews and
 * runs. Pure.
 */
export function checkStream(
  settings: StreamSettings,
  about: StreamContext & { stored?: StreamSettings },
): SettingFinding[] {
  return [...checkReferences(settings, about), ...checkEffects(settings, about)];
}

/** The part about settings whose fields exist: what would be lost, mixed or changed. */
export function checkEffects(
  settings: StreamSettings,
  about: Pick<StreamContext, 'stream' | 'overrides' | 'destination'>,
): SettingFinding[] {
  if (!settings.selected) return [];
  const written = writtenFields(settings, about);
  return [
    ...checkDuplicateFields(settings),
    ...checkTypes(settings, written),
    ...checkFilters(settings, about.stream),
    ...checkKey(settings, written, about),
    ...checkCursor(settings, written, about),
    ...checkColumns(settings, written, about.destination),
  ];
}

/**
 * Before a run: settings that were saved before a rule existed, or a catalog that has changed since, must not move rows
 * that the same check would refuse. `stream` has the choices of the catalog.
 * @throws ConfigurationError with the code of the first finding.
 */
export function requireSound(
  stream: StreamRow,
  { schema, destination }: { schema: StreamSchema; destination: AnyDestination },
): void {
  const [finding] = checkEffects(settingsOf(stream), { stream: schema, overrides: {}, destination });
  if (!finding) return;
  throw new ConfigurationError(finding.code, `${stream.name}: ${finding.message} (setting ${finding.place.join('.')})`);
}
