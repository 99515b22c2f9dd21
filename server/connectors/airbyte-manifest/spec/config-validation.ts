import { ConfigurationError } from '../../contract/errors.ts';
import type { ConfigValidation, DeclarativeSource } from '../components/source-components.ts';
import { allAtPath } from '../interpolation/dpath.ts';
import type { Templates } from '../interpolation/template.ts';
import { checkConfig, type Config } from './specification.ts';

/** A normalized configuration that passes the validations of the manifest. @throws ConfigurationError naming the value */
export function validConfig({ spec }: DeclarativeSource, config: Config, templates: Templates): Config {
  for (const validation of spec?.config_normalization_rules?.validations ?? []) {
    const place = validation.type === 'DpathValidator' ? validation.field_path.join('.') : 'a value of the manifest';
    for (const value of valuesOf(validation, config, templates)) {
      const [problem] = problemsOf(validation.validation_strategy.base_schema, value);
      if (problem !== undefined) throw new ConfigurationError('invalid_config', `${place} is not valid: ${problem}`);
    }
  }
  return config;
}

/** What is not in the configuration is not validated, as with Airbyte. */
function valuesOf(validation: ConfigValidation, config: Config, templates: Templates): unknown[] {
  if (validation.type === 'PredicateValidator') return [validation.value];
  const path = validation.field_path.map((part) => templates.text(part, {}) ?? part);
  return allAtPath(config, path);
}

/** A text is a JSON document. */
function problemsOf(schema: Record<string, unknown>, given: unknown): string[] {
  let value = given;
  if (typeof given === 'string') {
    try {
      value = JSON.parse(given);
    } catch {
      return ['it is not JSON'];
    }
  }
  return checkConfig({ type: 'object', properties: { value: schema } }, { value }).problems;
}
