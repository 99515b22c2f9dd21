import { stringify } from 'yaml';
import type { Cli } from '../context.ts';
import { type Current, readCurrent } from './current.ts';
import { hasMask } from '../mask.ts';
import { DEFAULTS, withoutDefaults } from './defaults.ts';
import { type Body, KEYS } from './document.ts';

/** Writes a file in which `apply`, given the secrets, finds nothing to change. */
export async function exportPipelines(cli: Cli, flags: { output?: string; users: boolean }): Promise<void> {
  const api = await cli.api();
  const [current, connectors] = await Promise.all([
    readCurrent(api, { withPeople: flags.users }),
    api.connectors.list.query(),
  ]);
  const defaultsOf = ({ connector_type, connector_name }: Current['sources'][number]): Body => {
    const known = connectors.find((one) => one.connector_type === connector_type && one.name === connector_name);
    return Object.fromEntries((known?.parameters ?? []).map((one) => [one.name, one.default]));
  };
  const document = {
    version: 1,
    ...(flags.users && {
      roles: named(current.roles, ({ permissions, description }) => withoutEmpty({ permissions, description })),
      users: named(current.users, ({ full_name, roles }) => ({ full_name, roles })),
    }),
    sources: named(current.sources, (source) => connectorBody(source, defaultsOf(source))),
    destinations: named(current.destinations, (destination) => connectorBody(destination, defaultsOf(destination))),
    connections: named(current.connections, connectionBody),
    triggers: named(current.triggers, (trigger) => triggerBody(trigger, current)),
  };
  const text = stringify(document, { lineWidth: 100 });
  if (flags.output === undefined) return cli.print(text.trimEnd());
  await Bun.write(flags.output, text);
  const secrets = [...new Set([...text.matchAll(/(?<!\$)\$\{(\w+)\}/g)].map(([, name]) => name))];
  cli.print(`Saved ${flags.output}${secrets.length > 0 ? `. Before \`apply\`, set ${secrets.join(', ')}` : ''}`);
}

const named = <Thing extends { name: string }>(things: Thing[], body: (thing: Thing) => Body) =>
  Object.fromEntries(things.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((thing) => [thing.name, body(thing)]));

/** Omits empty values, which are the defaults. */
const withoutEmpty = (body: Body): Body =>
  Object.fromEntries(
    Object.entries(body).filter(
      ([, value]) => value != null && value !== '' && !(Array.isArray(value) && value.length === 0),
    ),
  );

function connectorBody(one: Current['sources'][number], defaults: Body): Body {
  const parameters = Object.entries(withoutDefaults(one.parameters, defaults)).map(([name, value]) => [
    name,
    withVariables(value, `${one.name}_${name}`),
  ]);
  const {
    host_key_fingerprint: _seen,
    refused_host_key_fingerprint: _refused,
    fingerprint: _fingerprint,
    public_key: _public,
    ...tunnel
  } = one.ssh_tunnel ?? {};
  return withoutEmpty({
    connector: one.connector_name,
    parameters: withoutEmpty(Object.fromEntries(parameters)),
    datasets: plain(one.datasets),
    ssh_tunnel: one.ssh_tunnel && tunnel,
    credentials_expire_at: one.credentials_expire_at,
  });
}

function connectionBody(connection: Current['connections'][number]): Body {
  const { description: _text, next_runs: _next, ...schedule } = connection.schedule;
  const settings = KEYS.connections.optional.map((key) => [key, plain(connection[key as keyof typeof connection])]);
  const body = {
    source: connection.source.name,
    destination: connection.destination.name,
    ...Object.fromEntries(settings),
    // auto_disabled and locked are set by the service, not requested.
    status: connection.status === 'active' || connection.status === 'paused' ? connection.status : undefined,
    schedule: withoutEmpty(schedule),
    streams: connection.streams.filter(({ selected }) => selected).map(streamBody),
  };
  return withoutEmpty(withoutDefaults(body, DEFAULTS.connections));
}

function streamBody(stream: Current['connections'][number]['streams'][number]): Body {
  const {
    id: _id,
    selected: _selected,
    cursor_value: _value,
    cursor_updated_at: _at,
    row_count_last_run: _rows,
    fresh_at: _fresh,
    parked: _parked,
    ...rest
  } = stream;
  return withoutEmpty(withoutDefaults(plain(rest) as Body, DEFAULTS.streams));
}

function triggerBody(trigger: Current['triggers'][number], current: Current): Body {
  const settings = KEYS.triggers.optional.map((key) => [key, plain(trigger[key as keyof typeof trigger])]);
  const nameOf = (id: unknown) =>
    [...current.destinations, ...current.sources, ...current.connections].find((one) => one.id === id)?.name;
  const actions = trigger.actions.map(({ account_connector_id, connection_id, ...action }) =>
    withoutEmpty({
      ...(withVariables(action, trigger.name) as Body),
      account_connector: nameOf(account_connector_id),
      connection: nameOf(connection_id),
    }),
  );
  return withoutEmpty(withoutDefaults({ ...Object.fromEntries(settings), actions }, DEFAULTS.triggers));
}

/** Replaces each text with a masked secret by a variable, which `apply` reads from the environment. */
function withVariables(value: unknown, name: string): unknown {
  if (!hasMask(value)) return plain(value);
  if (typeof value === 'string') return `\${${name.toUpperCase().replaceAll(/\W+/g, '_')}}`;
  if (Array.isArray(value)) return value.map((one, index) => withVariables(one, `${name}_${index + 1}`));
  return Object.fromEntries(
    Object.entries(value as Body).map(([key, one]) => [key, withVariables(one, `${name}_${key}`)]),
  );
}

/** Escapes `${` so that `apply` does not read it as a variable. */
function plain(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('${', '$${');
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
}
