import type { ApiClient } from '../../api.ts';
import { askChoice, askText } from '../ask.ts';
import { askParameter, askParameters, type Values, valueOf } from '../ask-parameters.ts';
import type { Cli } from '../context.ts';
import { Refused, UsageError } from '../exit.ts';
import { pick } from '../find.ts';
import { readDocument } from '../read-document.ts';
import { colouredStatus, moment, number } from '../style.ts';
import { showList, showThing } from '../table.ts';
import type { Connector } from './connectors.ts';
import { requireConfirmation } from './session.ts';

type Type = 'source' | 'destination';
export type AccountConnector = Awaited<ReturnType<ApiClient['account_connectors']['list']['query']>>[number];

export interface Changing {
  json: boolean;
  name?: string;
  set?: readonly string[];
  file?: string;
  noTest: boolean;
}
export type Creating = Changing;

/** A command of `sources` or of `destinations`. */
export interface Asked<Flags> {
  type: Type;
  flags: Flags;
  /** What the argument names. */
  wanted: string;
}

const find = async (api: ApiClient, { type, wanted }: { type: Type; wanted: string }) =>
  pick(await api.account_connectors.list.query({ connector_type: type }), wanted, type);

export async function listOf(cli: Cli, { type, flags }: Omit<Asked<{ json: boolean }>, 'wanted'>): Promise<void> {
  const all = await (await cli.api()).account_connectors.list.query({ connector_type: type });
  showList(cli, all, {
    json: flags.json,
    none: `There is no ${type} yet`,
    columns: {
      name: ({ name }) => name,
      connector: ({ connector_name }) => connector_name,
      status: ({ status }) => colouredStatus(cli.style, status),
      streams: ({ streams_count }) => number(streams_count),
      connections: ({ connections_count }) => number(connections_count),
      tested: ({ last_tested_at }) => moment(last_tested_at),
      id: ({ id }) => id,
    },
  });
}

export async function showOne(cli: Cli, asked: Asked<{ json: boolean }>): Promise<void> {
  show(cli, await find(await cli.api(), asked), asked.flags.json);
}

export async function createOne(
  cli: Cli,
  { type, flags, wanted }: { type: Type; flags: Creating; wanted?: string },
): Promise<void> {
  const api = await cli.api();
  const connector = await chosenConnector(cli, { api, connector_type: type, wanted });
  const initial = connector.display_name;
  const name = flags.name ?? (await askText(cli, { message: 'Name', initial, hint: 'give it with --name' }));
  const given = await givenValues(connector, flags);
  const parameters = cli.interactive ? await askParameters(cli, connector.parameters, given) : given;
  const made = await api.account_connectors.create.mutate({
    name,
    connector_type: type,
    connector_name: connector.name,
    parameters,
    test_connection: !flags.noTest,
  });
  const asked = cli.interactive ? await askDynamic(cli, { api, connector, made, parameters }) : {};
  const whole =
    Object.keys(asked).length === 0
      ? made
      : await change(api, { id: made.id, parameters: asked, noTest: flags.noTest });
  show(cli, whole, flags.json);
  requireWorking(whole, flags);
}

export async function updateOne(cli: Cli, asked: Asked<Changing>): Promise<void> {
  const { type, flags } = asked;
  const api = await cli.api();
  const found = await find(api, asked);
  const connector = await api.connectors.get.query({ connector_type: type, connector_name: found.connector_name });
  const parameters = await givenValues(connector, flags);
  const isSaid = Object.keys(parameters).length > 0;
  if (flags.name === undefined && !isSaid) throw new UsageError('Nothing to change: --name, --set or --file says what');
  const changes = { ...(flags.name && { name: flags.name }), ...(isSaid && { parameters }) };
  const changed = await change(api, { id: found.id, ...changes, noTest: flags.noTest });
  show(cli, changed, flags.json);
  requireWorking(changed, flags);
}

export async function testOne(cli: Cli, asked: Asked<{ json: boolean }>): Promise<void> {
  const api = await cli.api();
  const { id: account_connector_id } = await find(api, asked);
  await api.account_connectors.login.mutate({ account_connector_id });
  const tried = await api.account_connectors.get.query({ connector_type: asked.type, account_connector_id });
  show(cli, tried, asked.flags.json);
  requireWorking(tried, { noTest: false });
}

export async function deleteOne(cli: Cli, asked: Asked<{ yes: boolean }>): Promise<void> {
  const api = await cli.api();
  const { id, name } = await find(api, asked);
  await requireConfirmation(cli, { yes: asked.flags.yes, message: `Delete the ${asked.type} "${name}"?` });
  await api.account_connectors.delete.mutate({ account_connector_id: id });
  cli.say(`Deleted: ${name}`);
}

async function chosenConnector(
  cli: Cli,
  { api, connector_type, wanted }: { api: ApiClient; connector_type: Type; wanted?: string },
): Promise<Connector> {
  const all = await api.connectors.list.query();
  const ofType = all.filter((one) => one.connector_type === connector_type);
  if (wanted !== undefined) {
    // Hidden ones are in no list, but can be named.
    const known = ofType.some(({ name }) => name.startsWith(wanted.toLowerCase()));
    return known
      ? pick(ofType, wanted, 'connector')
      : api.connectors.get.query({ connector_type, connector_name: wanted });
  }
  const choices = Object.fromEntries(ofType.map(({ name, display_name }) => [name, display_name]));
  const name = await askChoice(cli, { message: 'Connector', hint: 'name it as the first argument' }, choices);
  return pick(ofType, name, 'connector');
}

/** Of --file, and of --set over it. */
async function givenValues(connector: Connector, { set = [], file }: Changing): Promise<Values> {
  const values: Values = file === undefined ? {} : ((await readDocument(file)) as Values);
  if (values === null || typeof values !== 'object' || Array.isArray(values))
    throw new UsageError(`${file}: parameters by name are needed`);
  for (const pair of set) {
    const at = pair.indexOf('=');
    const name = pair.slice(0, at);
    const parameter = connector.parameters.find((one) => one.name === name);
    if (at < 1 || !parameter) {
      const names = connector.parameters.map((one) => one.name).join(', ');
      throw new UsageError(`--set ${at < 1 ? pair : name}: write it as name=value; the names are ${names}`);
    }
    values[name] = valueOf(parameter, pair.slice(at + 1));
  }
  return values;
}

/** What only the other side can offer is asked for once it can be reached; each answer is checked by the service. */
async function askDynamic(
  cli: Cli,
  {
    api,
    connector,
    made,
    parameters,
  }: { api: ApiClient; connector: Connector; made: AccountConnector; parameters: Values },
): Promise<Values> {
  const asked: Values = {};
  if (made.status !== 'active') return asked;
  const dynamic = connector.parameters.filter((one) => one.dynamic_possible_values && !(one.name in parameters));
  for (const parameter of dynamic) {
    const account_connector_id = made.id;
    const values = await api.account_connectors.dynamicPossibleValues
      .query({ account_connector_id, parameter_name: parameter.name })
      .catch(() => null);
    const none: Record<string, string> = parameter.required ? {} : { '': '(none)' };
    const value = await askParameter(cli, parameter, values && { ...none, ...values });
    if (value === undefined || value === '') continue;
    const { is_valid, errors } = await api.account_connectors.validateParameter.mutate({
      account_connector_id,
      parameter_name: parameter.name,
      value,
    });
    if (is_valid) asked[parameter.name] = value;
    else cli.note(`${parameter.label} is left out: ${errors.map(({ message }) => message).join('; ')}`);
  }
  return asked;
}

const change = (
  api: ApiClient,
  { id, noTest, ...changes }: { id: string; name?: string; parameters?: Values; noTest: boolean },
) => api.account_connectors.update.mutate({ account_connector_id: id, ...changes, test_connection: !noTest });

function requireWorking({ name, status }: AccountConnector, { noTest }: { noTest: boolean }): void {
  if (noTest || status === 'active') return;
  throw new Refused('failed', `"${name}" is stored, but does not work yet (${status})`);
}

function show(cli: Cli, one: AccountConnector, json: boolean): void {
  const mark = { passed: '✓', failed: '✗', skipped: '–' };
  const checks = one.last_test?.checks.map(
    ({ status, title, message }) => `${mark[status]} ${title}${message ? `: ${message}` : ''}`,
  );
  showThing(cli, one, {
    json,
    lines: {
      name: one.name,
      id: one.id,
      connector: `${one.connector_display_name} ${one.connector_version}`,
      status: colouredStatus(cli.style, one.status) + (one.status_message ? `: ${one.status_message}` : ''),
      parameters: Object.entries(one.parameters)
        .map(([name, value]) => `${name} = ${typeof value === 'string' ? value : JSON.stringify(value)}`)
        .join('\n'),
      ...(one.ssh_tunnel && { tunnel: tunnelOf(one.ssh_tunnel) }),
      test: checks?.join('\n') || '–',
      catalog: `${one.catalog_status}, ${number(one.streams_count)} streams, ${moment(one.catalog_refreshed_at)}`,
      connections: number(one.connections_count),
    },
  });
}

/** Where it goes, the key that the SSH server has to know, and the one that it showed. */
const tunnelOf = (tunnel: NonNullable<AccountConnector['ssh_tunnel']>): string =>
  [
    `${tunnel.username}@${tunnel.host}:${tunnel.port}${tunnel.enabled ? '' : ' (off)'}`,
    tunnel.public_key,
    `host key ${tunnel.host_key_fingerprint ?? 'noted at the first login'}`,
    tunnel.refused_host_key_fingerprint && `refused  ${tunnel.refused_host_key_fingerprint}`,
  ]
    .filter(Boolean)
    .join('\n');
