import type { ApiClient } from '../api.ts';
import { connectionDefaults, DEFAULTS, withoutDefaults } from './defaults.ts';
import { type Body, KEYS } from './keys.ts';
import { hasMask } from './mask.ts';

type AccountConnector = Awaited<ReturnType<ApiClient['account_connectors']['list']['query']>>[number];
type Connection = Awaited<ReturnType<ApiClient['connections']['list']['query']>>[number];
type Trigger = Awaited<ReturnType<ApiClient['automation']['listTriggers']['query']>>[number];
type Connectors = Awaited<ReturnType<ApiClient['connectors']['list']['query']>>;

/** How a document refers to secrets, and how it writes other texts. */
export interface Style {
  variable(name: string): string;
  text(value: string): string;
}

/** `apply` reads `${NAME}` from the environment and `$${` as a literal. */
export const YAML: Style = {
  variable: (name) => `\${${name}}`,
  text: (value) => value.replaceAll('${', '$${'),
};

/** The defaults of a connector's parameters, by name. */
export function parameterDefaults(
  { connector_type, connector_name }: Pick<AccountConnector, 'connector_type' | 'connector_name'>,
  connectors: Connectors,
): Body {
  const known = connectors.find((one) => one.connector_type === connector_type && one.name === connector_name);
  return Object.fromEntries((known?.parameters ?? []).map((one) => [one.name, one.default]));
}

/** Omits empty values, which are the defaults. */
export const withoutEmpty = (body: Body): Body =>
  Object.fromEntries(
    Object.entries(body).filter(
      ([, value]) => value != null && value !== '' && !(Array.isArray(value) && value.length === 0),
    ),
  );

export function connectorBody(one: AccountConnector, defaults: Body, style: Style = YAML): Body {
  const parameters = Object.entries(withoutDefaults(one.parameters, defaults)).map(([name, value]) => [
    name,
    withVariables(value, `${one.name}_${name}`, style),
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
    datasets: plain(one.datasets, style),
    ssh_tunnel: one.ssh_tunnel && tunnel,
    credentials_expire_at: one.credentials_expire_at,
  });
}

export function connectionBody(connection: Connection, style: Style = YAML): Body {
  const settings = KEYS.connections.optional.map((key) => [
    key,
    plain(connection[key as keyof typeof connection], style),
  ]);
  const body = {
    source: connection.source.name,
    destination: connection.destination.name,
    ...Object.fromEntries(settings),
    // auto_disabled and locked are set by the service, not requested.
    status: connection.status === 'active' || connection.status === 'paused' ? connection.status : undefined,
    schedule: scheduleBody(connection.schedule),
    verification_schedule: connection.verification_schedule && scheduleBody(connection.verification_schedule),
    streams: connection.streams.filter(({ selected }) => selected).map((stream) => streamBody(stream, style)),
  };
  return withoutEmpty(withoutDefaults(body, connectionDefaults(connection.source)));
}

const scheduleBody = ({ description: _text, next_runs: _next, ...schedule }: Connection['schedule']): Body =>
  withoutEmpty(schedule);

function streamBody(stream: Connection['streams'][number], style: Style): Body {
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
  return withoutEmpty(withoutDefaults(plain(rest, style) as Body, DEFAULTS.streams));
}

/** `nameOf`: of a connection, a source or a destination. */
export function triggerBody(trigger: Trigger, nameOf: (id: unknown) => string | undefined, style: Style = YAML): Body {
  const actions = trigger.actions.map(({ account_connector_id, connection_id, ...action }) =>
    withoutEmpty({
      ...(withVariables(action, trigger.name, style) as Body),
      account_connector: nameOf(account_connector_id),
      connection: nameOf(connection_id),
    }),
  );
  return withoutEmpty(withoutDefaults({ ...triggerSettings(trigger, style), actions }, DEFAULTS.triggers));
}

/** As the API takes it, with ids. */
export const triggerRequestBody = (trigger: Trigger, style: Style): Body =>
  withoutEmpty(
    withoutDefaults(
      {
        ...triggerSettings(trigger, style),
        actions: trigger.actions.map((action) => withoutEmpty(withVariables(action, trigger.name, style) as Body)),
      },
      DEFAULTS.triggers,
    ),
  );

const triggerSettings = (trigger: Trigger, style: Style): Body =>
  Object.fromEntries(KEYS.triggers.optional.map((key) => [key, plain(trigger[key as keyof typeof trigger], style)]));

/** Replaces each text with a masked secret by a variable. */
function withVariables(value: unknown, name: string, style: Style): unknown {
  if (!hasMask(value)) return plain(value, style);
  if (typeof value === 'string') return style.variable(name.toUpperCase().replaceAll(/\W+/g, '_'));
  if (Array.isArray(value)) return value.map((one, index) => withVariables(one, `${name}_${index + 1}`, style));
  return Object.fromEntries(
    Object.entries(value as Body).map(([key, one]) => [key, withVariables(one, `${name}_${key}`, style)]),
  );
}

function plain(value: unknown, style: Style): unknown {
  if (typeof value === 'string') return style.text(value);
  if (Array.isArray(value)) return value.map((one) => plain(one, style));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one, style)]));
}
