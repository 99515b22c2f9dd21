import type { ApiClient } from '../../api.ts';
import { askChoice, askText } from '../ask.ts';
import { askParameter, askParameters, valueOf, type Values } from '../ask-parameters.ts';
import type { Cli } from '../context.ts';
import { CommandError, UsageError } from '../exit.ts';
import { pick, pickWhole } from '../find.ts';
import { MASK } from '../../pipeline-file/mask.ts';
import { readObject } from '../read-document.ts';
import { colouredStatus, moment, number } from '../style.ts';
import { firstLines, showList, showThing } from '../table.ts';
import type { Connector } from './connectors.ts';
import { openedInBrowser } from './open.ts';
import { requireConfirmation } from './session.ts';

type Type = 'source' | 'destination';
export type AccountConnector = Awaited<ReturnType<ApiClient['account_connectors']['list']['query']>>[number];

export interface Changing {
  json: boolean;
  name?: string;
  set?: readonly string[];
  file?: string;
  noTest: boolean;
  /** Obtains the tokens by a consent in the browser. */
  connect: boolean;
}
export type Creating = Changing;

/** Arguments of a `sources` or `destinations` command. */
export interface AccountConnectorCommand<Flags> {
  type: Type;
  flags: Flags;
  /** Name, prefix or id from the command line. */
  wanted: string;
}

export const find = async (api: ApiClient, { type, wanted }: { type: Type; wanted: string }) =>
  pick(await api.account_connectors.list.query({ connector_type: type }), wanted, type);

export async function listOf(
  cli: Cli,
  { type, flags }: Omit<AccountConnectorCommand<{ json: boolean }>, 'wanted'>,
): Promise<void> {
  const all = await (await cli.api()).account_connectors.list.query({ connector_type: type });
  showList(cli, all, {
    json: flags.json,
    empty: `No ${type}s yet`,
    columns: {
      name: ({ name }) => name,
      connector: ({ connector_name }) => connector_name,
      status: ({ status }) => colouredStatus(cli.style, status),
      streams: ({ streams_count }) => number(streams_count),
      connections: ({ connections_count }) => number(connections_count),
    },
    wide: { tested: ({ last_tested_at }) => moment(last_tested_at), id: ({ id }) => id },
  });
}

export async function showOne(cli: Cli, asked: AccountConnectorCommand<{ json: boolean }>): Promise<void> {
  show(cli, await find(await cli.api(), asked), asked.flags.json);
}

export async function createOne(
  cli: Cli,
  { type, flags, wanted }: { type: Type; flags: Creating; wanted?: string },
): Promise<void> {
  const api = await cli.api();
  const connector = await selectConnector(cli, { api, connector_type: type, wanted });
  const initial = connector.display_name;
  const name = flags.name ?? (await askText(cli, { message: 'Name', initial, hint: 'use --name' }));
  const given = await givenValues(connector, flags);
  const parameters = cli.interactive ? await askParameters(cli, connector.parameters, given) : given;
  const created = await api.account_connectors.create.mutate({
    name,
    connector_type: type,
    connector_name: connector.name,
    parameters,
    test_connection: !flags.noTest,
    ...(flags.connect && {
      oauth_consent: await consent(cli, api, { connector_type: type, connector_name: connector.name, parameters }),
    }),
  });
  const asked = cli.interactive ? await askDynamic(cli, { api, connector, created, parameters }) : {};
  const whole =
    Object.keys(asked).length === 0
      ? created
      : await change(api, { id: created.id, parameters: asked, noTest: flags.noTest });
  show(cli, whole, flags.json);
  requireActive(whole, flags);
}

export async function updateOne(cli: Cli, asked: AccountConnectorCommand<Changing>): Promise<void> {
  const { type, flags } = asked;
  const api = await cli.api();
  const found = await find(api, asked);
  const connector = await api.connectors.get.query({ connector_type: type, connector_name: found.connector_name });
  const given = await givenValues(connector, flags);
  const parameters = cli.interactive ? await askRedirected(cli, { connector, found, given }) : given;
  const hasParameters = Object.keys(parameters).length > 0;
  if (flags.name === undefined && !hasParameters && !flags.connect)
    throw new UsageError('Nothing to change. Use --name, --set, --file or --connect');
  const changes = { ...(flags.name && { name: flags.name }), ...(hasParameters && { parameters }) };
  const consented = flags.connect && {
    oauth_consent: await consent(cli, api, { account_connector_id: found.id, parameters }),
  };
  const changed = await change(api, { id: found.id, ...changes, ...consented, noTest: flags.noTest });
  show(cli, changed, flags.json);
  requireActive(changed, flags);
}

/** Waits until the person has consented in the browser. The code proves that it is the same person. */
async function consent(
  cli: Cli,
  api: ApiClient,
  request: Parameters<ApiClient['account_connectors']['beginConsent']['mutate']>[0],
): Promise<{ id: string; code: string }> {
  const { id, url } = await api.account_connectors.beginConsent.mutate(request);
  cli.note(`Sign in at the provider, then enter the code that the last page shows:\n${url}`);
  if (cli.interactive) await openedInBrowser(cli, url);
  return { id, code: await askText(cli, { message: 'Code', hint: 'run the command in a terminal' }) };
}

/** Prompts for the stored secrets again when a given value sends them to another place. */
async function askRedirected(
  cli: Cli,
  { connector, found, given }: { connector: Connector; found: AccountConnector; given: Values },
): Promise<Values> {
  const isMoved = connector.parameters.some(
    ({ name, directs_secrets }) =>
      directs_secrets && name in given && JSON.stringify(given[name]) !== JSON.stringify(found.parameters[name]),
  );
  if (!isMoved) return given;
  const secrets: Values = {};
  for (const parameter of connector.parameters) {
    if (!parameter.secret || found.parameters[parameter.name] !== MASK || parameter.name in given) continue;
    secrets[parameter.name] = await askParameter(cli, { ...parameter, label: `${parameter.label}, again` });
  }
  return { ...given, ...secrets };
}

export interface Testing {
  json: boolean;
  /** Where a connection creates its tables. Absent: the default schema. */
  schema?: string;
}

export async function testOne(cli: Cli, { type, flags, wanted }: AccountConnectorCommand<Testing>): Promise<void> {
  const api = await cli.api();
  const { id: account_connector_id } = await find(api, { type, wanted });
  await api.account_connectors.login.mutate({ account_connector_id });
  const tried = await api.account_connectors.get.query({ connector_type: type, account_connector_id });
  if (flags.schema === undefined) show(cli, tried, flags.json);
  requireActive(tried, { noTest: false });
  if (flags.schema === undefined) return;
  const asked = { account_connector_id, destination_schema: flags.schema };
  const last_test = await api.account_connectors.testSchema.mutate(asked);
  show(cli, { ...tried, last_test }, flags.json);
  if (last_test.status !== 'failed') return;
  throw new CommandError('failed', `"${tried.name}" works, but connections cannot write to its schema ${flags.schema}`);
}

export async function deleteOne(cli: Cli, asked: AccountConnectorCommand<{ yes: boolean }>): Promise<void> {
  const api = await cli.api();
  const all = await api.account_connectors.list.query({ connector_type: asked.type });
  const { id, name } = pickWhole(all, asked.wanted, asked.type);
  await requireConfirmation(cli, { yes: asked.flags.yes, message: `Delete the ${asked.type} "${name}"?` });
  await api.account_connectors.delete.mutate({ account_connector_id: id });
  cli.print(`Deleted: ${name}`);
}

async function selectConnector(
  cli: Cli,
  { api, connector_type, wanted }: { api: ApiClient; connector_type: Type; wanted?: string },
): Promise<Connector> {
  const all = await api.connectors.list.query();
  const ofType = all.filter((one) => one.connector_type === connector_type);
  if (wanted !== undefined) {
    // Hidden connectors are not listed but can be named.
    const known = ofType.some(({ name }) => name.startsWith(wanted.toLowerCase()));
    return known
      ? pick(ofType, wanted, 'connector')
      : api.connectors.get.query({ connector_type, connector_name: wanted });
  }
  const choices = Object.fromEntries(ofType.map(({ name, display_name }) => [name, display_name]));
  const name = await askChoice(cli, { message: 'Connector', hint: 'pass it as the first argument' }, choices);
  return pick(ofType, name, 'connector');
}

/** Values of --file, overridden by --set. */
export async function givenValues(
  connector: Connector,
  { set = [], file }: Pick<Changing, 'set' | 'file'>,
): Promise<Values> {
  const values: Values = file === undefined ? {} : await readObject(file);
  for (const pair of set) {
    const at = pair.indexOf('=');
    const name = pair.slice(0, at);
    const parameter = connector.parameters.find((one) => one.name === name);
    if (at < 1 || !parameter) {
      const names = connector.parameters.map((one) => one.name).join(', ');
      throw new UsageError(
        at < 1 ? `--set ${pair}: expected name=value` : `--set ${name}: unknown parameter. Valid parameters: ${names}`,
      );
    }
    values[name] = valueOf(parameter, pair.slice(at + 1));
  }
  return values;
}

/**
 * Prompts for parameters whose values come from the connected system, once it is reachable. The service validates each
 * value.
 */
async function askDynamic(
  cli: Cli,
  {
    api,
    connector,
    created,
    parameters,
  }: { api: ApiClient; connector: Connector; created: AccountConnector; parameters: Values },
): Promise<Values> {
  const asked: Values = {};
  if (created.status !== 'active') return asked;
  const dynamic = connector.parameters.filter((one) => one.dynamic_possible_values && !(one.name in parameters));
  for (const parameter of dynamic) {
    const account_connector_id = created.id;
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
    else cli.note(`${parameter.label} was not saved: ${errors.map(({ message }) => message).join('; ')}`);
  }
  return asked;
}

const change = (
  api: ApiClient,
  {
    id,
    noTest,
    ...changes
  }: { id: string; name?: string; parameters?: Values; oauth_consent?: { id: string; code: string }; noTest: boolean },
) => api.account_connectors.update.mutate({ account_connector_id: id, ...changes, test_connection: !noTest });

function requireActive({ name, status }: AccountConnector, { noTest }: { noTest: boolean }): void {
  if (noTest || status === 'active') return;
  throw new CommandError('failed', `"${name}" is saved, but its test did not pass (${status})`);
}

function show(cli: Cli, one: AccountConnector, json: boolean): void {
  const mark = { passed: '✓', failed: '✗', skipped: '–' };
  const checks = one.last_test?.checks.map(({ status, title, message, fix, statements = [] }) =>
    [
      `${mark[status]} ${title}${message ? `: ${message}` : ''}`,
      ...(fix ? [`  ${fix}`] : []),
      ...statements.map((statement) => `  ${statement};`),
    ].join('\n'),
  );
  showThing(cli, one, {
    json,
    lines: {
      name: one.name,
      id: one.id,
      connector: `${one.connector_display_name} ${one.connector_version}`,
      status: colouredStatus(cli.style, one.status) + (one.status_message ? `: ${one.status_message}` : ''),
      parameters: Object.entries(one.parameters)
        .map(([name, value]) => `${name} = ${firstLines(textOf(value), MAX_LINES)}`)
        .join('\n'),
      ...(one.ssh_tunnel && { tunnel: tunnelOf(one.ssh_tunnel) }),
      test: checks?.join('\n') || '–',
      catalog: `${one.catalog_status}, ${number(one.streams_count)} streams, ${moment(one.catalog_refreshed_at)}`,
      connections: number(one.connections_count),
    },
  });
}

/** A definition has hundreds of lines. */
const MAX_LINES = 5;
const textOf = (value: unknown) => (typeof value === 'string' ? value.trimEnd() : JSON.stringify(value));

/** The SSH server, the public key that it must accept, and its host key. */
const tunnelOf = (tunnel: NonNullable<AccountConnector['ssh_tunnel']>): string =>
  [
    `${tunnel.username}@${tunnel.host}:${tunnel.port}${tunnel.enabled ? '' : ' (off)'}`,
    tunnel.public_key,
    `host key ${tunnel.host_key_fingerprint ?? 'recorded at the first login'}`,
    tunnel.refused_host_key_fingerprint && `rejected  ${tunnel.refused_host_key_fingerprint}`,
  ]
    .filter(Boolean)
    .join('\n');
