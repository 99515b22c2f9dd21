import { fieldName } from '../transfer-plan.ts';
import { givesChanges, takesChanges } from '../stream-defaults.ts';
import type { SettingFinding } from './finding.ts';
import { isPair, NEEDS_KEY, type StreamContext, type StreamSettings } from './settings.ts';

type References = Pick<StreamContext, 'stream' | 'source' | 'destination' | 'reverse_etl'> & {
  /** Current settings, which may exclude fields that the source no longer has. */
  stored?: Pick<StreamSettings, 'fields'>;
};

/** Names that do not exist, and abilities that a side does not have. Pure. */
export function checkReferences(settings: StreamSettings, about: References): SettingFinding[] {
  const findings = [...checkAbilities(settings, about), ...checkNames(settings, about)];
  if (settings.mapping) findings.push(...checkMappedFields(settings, about));
  else findings.push(...checkKeptFields(settings, about));
  return settings.selected ? [...findings, ...checkModes(settings, about)] : findings;
}

function checkAbilities({ mapping, dataset_sql }: StreamSettings, about: References): SettingFinding[] {
  if (!about.reverse_etl && (dataset_sql !== null || mapping !== null)) {
    const key = mapping === null ? 'dataset_sql' : 'mapping';
    const message = `${key} is for connections from a database into business applications`;
    return [{ code: 'reverse_etl_only', message, place: [key] }];
  }
  if (dataset_sql === null || about.source.capabilities?.datasets) return [];
  const message = `${about.source.name} reads no queries`;
  return [{ code: 'datasets_unsupported', message, place: ['dataset_sql'] }];
}

function checkNames(
  { fields, filters, cursor_field, primary_key }: StreamSettings,
  about: References,
): SettingFinding[] {
  const known = new Set(about.stream.fields.map(({ path }) => fieldName(path)));
  const stored = new Set(about.stored?.fields.map(({ path }) => fieldName(path)));
  const named: { name: string; place: SettingFinding['place']; optional?: boolean }[] = [
    ...fields.map(({ path, selected }, index) => {
      return { name: fieldName(path), place: ['fields', index, 'path'], optional: !selected };
    }),
    ...filters.map(({ field }, index) => ({ name: field, place: ['filters', index, 'field'] })),
    ...(cursor_field ? [{ name: fieldName(cursor_field), place: ['cursor_field'] }] : []),
    ...(primary_key ?? []).map((path, index) => ({ name: fieldName(path), place: ['primary_key', index] })),
  ];
  return named
    .filter(({ name, optional }) => !known.has(name) && !(optional && stored.has(name)))
    .map(({ name, place }) => ({ code: 'unknown_field', message: `there is no field "${name}"`, place }));
}

function checkMappedFields({ mapping }: StreamSettings, { stream }: References): SettingFinding[] {
  const known = new Set(stream.fields.map(({ path }) => fieldName(path)));
  return (mapping ?? []).flatMap(({ source_field, constant_value }, index): SettingFinding[] => {
    if (constant_value !== null || known.has(source_field)) return [];
    const place = ['mapping', index, 'source_field'];
    return [{ code: 'unknown_field', message: `there is no field "${source_field}"`, place }];
  });
}

/** Fields of the key and the cursor must be selected. */
function checkKeptFields({ fields, sync_mode, cursor_field, primary_key }: StreamSettings, { stream }: References) {
  const excluded = new Map(
    fields.flatMap(({ path, selected }, index) => (selected ? [] : [[fieldName(path), index] as const])),
  );
  const known = new Set(stream.fields.map(({ path }) => fieldName(path)));
  const lost = (path: string[], code: 'primary_key_required' | 'cursor_required', role: string): SettingFinding[] => {
    const index = excluded.get(fieldName(path));
    if (index === undefined || !known.has(fieldName(path))) return [];
    const message = `the ${role} field "${fieldName(path)}" must be selected`;
    return [{ code, message, place: ['fields', index, 'selected'] }];
  };
  return [
    ...(primary_key ?? []).flatMap((path) => lost(path, 'primary_key_required', 'key')),
    ...(sync_mode === 'incremental' && cursor_field ? lost(cursor_field, 'cursor_required', 'cursor') : []),
  ];
}

function checkModes(settings: StreamSettings, { stream, destination }: References): SettingFinding[] {
  const { sync_mode, destination_sync_mode: mode, mapping } = settings;
  const findings: SettingFinding[] = [];
  if (!stream.supported_sync_modes.includes(sync_mode)) {
    const message = `the source cannot be read ${sync_mode}`;
    findings.push({ code: 'unsupported_sync_mode', message, place: ['sync_mode'] });
  }
  const writable = destination.supported_destination_sync_modes.includes(mode);
  if (!writable || !isPair(settings, destination)) {
    const why = writable ? `does not go with ${sync_mode}` : 'is not supported by the destination';
    findings.push({ code: 'unsupported_sync_mode', message: `${mode} ${why}`, place: ['destination_sync_mode'] });
  } else if (givesChanges(stream, settings) && !takesChanges(destination, mode)) {
    const message = `${destination.display_name} cannot apply deletes: write by append, which keeps each change as a row`;
    findings.push({ code: 'changes_unsupported', message, place: ['destination_sync_mode'] });
  }
  if (sync_mode === 'incremental' && !settings.cursor_field?.length && !stream.source_defined_cursor) {
    const message = 'an incremental sync needs a cursor_field';
    findings.push({ code: 'cursor_required', message, place: ['cursor_field'] });
  }
  const keyed = mapping ? mapping.some((one) => one.is_match_key) : settings.primary_key?.length;
  if (NEEDS_KEY.includes(mode) && !keyed) {
    const [key, what] = mapping ? (['mapping', 'match key'] as const) : (['primary_key', 'primary_key'] as const);
    findings.push({ code: 'primary_key_required', message: `${mode} needs a ${what}`, place: [key] });
  }
  return findings;
}
