import type { ApiClient } from '../api.ts';
import { withoutEmpty, YAML } from './bodies.ts';
import type { Body } from './keys.ts';

export type Template = Awaited<ReturnType<ApiClient['templates']['list']['query']>>[number];

/** A template as a file for `apply`, with an environment variable for each value to enter. */
export function templateDocument({ source, destination, connection }: Template): Body {
  const { name, destination_schema, schedule, streams } = connection;
  const body = { source: source.name, destination: destination.name, destination_schema, streams };
  return {
    version: 1,
    sources: { [source.name]: sideBody(source) },
    destinations: { [destination.name]: sideBody(destination) },
    connections: { [name]: withoutEmpty({ ...body, schedule: withoutEmpty(schedule) }) },
  };
}

function sideBody({ connector_name, name, parameters, inputs }: Template['source']): Body {
  const all: Body = { ...parameters };
  for (const input of inputs) {
    const [parameter = input, key] = input.split('.');
    const value = YAML.variable(`${name}_${key ?? parameter}`.toUpperCase().replaceAll(/\W+/g, '_'));
    all[parameter] = key === undefined ? value : { ...(all[parameter] as Body | undefined), [key]: value };
  }
  return { connector: connector_name, parameters: all };
}
