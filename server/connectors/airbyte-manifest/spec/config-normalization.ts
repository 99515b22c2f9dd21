import type { ConfigChange, DeclarativeSource } from '../components/source-components.ts';
import { atPath, setAtPath } from '../interpolation/dpath.ts';
import { pyText } from '../interpolation/python-literal.ts';
import type { Config } from './specification.ts';
import type { Templates } from '../interpolation/template.ts';
import { isMapping } from '../interpolation/values.ts';
import { transform } from '../transformations/transformations.ts';

/** Applies the config migrations of the manifest, then its transformations. */
export function normalizedConfig({ spec }: DeclarativeSource, given: Config, templates: Templates): Config {
  const rules = spec?.config_normalization_rules;
  if (!rules) return given;
  const changes = [
    ...rules.config_migrations.flatMap(({ transformations }) => transformations),
    ...rules.transformations,
  ];
  return changes.reduce((config, change) => changed(config, change, templates), structuredClone(given));
}

function changed(config: Config, change: ConfigChange, templates: Templates): Config {
  const scope = { config };
  if (change.type === 'ConfigRemapField') return remapped(config, change, templates);
  if (change.type === 'ConfigRemoveFields')
    return transform(config, { transformations: [{ ...change, type: 'RemoveFields' }], templates, scope });
  const fields = change.fields.map(({ value_type, ...field }) => ({ ...field, ...(value_type && { value_type }) }));
  return transform(config, { transformations: [{ ...change, fields, type: 'AddFields' }], templates, scope });
}

function remapped(
  config: Config,
  { map, field_path }: Extract<ConfigChange, { type: 'ConfigRemapField' }>,
  templates: Templates,
): Config {
  const scope = { config };
  const path = field_path.map((part) => templates.text(part, scope) ?? part);
  const names = typeof map === 'string' ? templates.value(map, scope) : map;
  const found = atPath(config, path);
  const name = found === undefined || found === null ? '' : pyText(found);
  if (isMapping(names) && Object.hasOwn(names, name)) setAtPath(config, path, names[name]);
  return config;
}
