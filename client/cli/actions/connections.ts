import type { ApiClient } from '../../api.ts';
import { connectionFilters, filterConnections } from '../../connection-filters.ts';
import { askChoice, askText } from '../ask.ts';
import type { Cli } from '../context.ts';
import { UsageError } from '../exit.ts';
import { pick, pickWhole } from '../find.ts';
import { pairOf } from '../read-document.ts';
import { colouredStatus, moment, plural } from '../style.ts';
import { firstLines, showList, showThing } from '../table.ts';
import { requireConfirmation } from './session.ts';
import { findView } from './views.ts';

export type Connection = Awaited<ReturnType<ApiClient['connections']['list']['query']>>[number];

export interface ListingConnections {
  json: boolean;
  view?: string;
  folder?: string;
}

export interface CreatingConnection {
  json: boolean;
  name?: string;
  source?: string;
  destination?: string;
  schema?: string;
  folder?: string;
  cron?: string;
  every?: number;
  continuous: boolean;
  timezone?: string;
  stream?: readonly string[];
  run: boolean;
}

export interface ChangingConnection {
  json: boolean;
  name?: string;
  description?: string;
  schema?: string;
  prefix?: string;
  cron?: string;
  every?: number;
  continuous: boolean;
  manual: boolean;
  timezone?: string;
  stream?: readonly string[];
  tag?: readonly string[];
  folder?: string;
  set?: readonly string[];
}

export const findConnection = async (api: ApiClient, wanted: string): Promise<Connection> =>
  pick(await api.connections.list.query(), wanted, 'connection');

export async function listConnections(cli: Cli, flags: ListingConnections): Promise<void> {
  const api = await cli.api();
  const view = flags.view === undefined ? null : await findView(api, { page: 'connections', wanted: flags.view });
  const filters = connectionFilters(new URLSearchParams(view?.query));
  const all = await api.connections.list.query({ folder: flags.folder });
  showList(cli, filterConnections(all, filters), {
    json: flags.json,
    empty: all.length === 0 && !flags.folder ? 'No connections yet' : 'No connections match',
    columns: {
      name: ({ name }) => name,
      status: ({ status }) => colouredStatus(cli.style, status),
      health: ({ health }) => colouredStatus(cli.style, health),
      'last run': ({ last_run }) => moment(last_run?.finished_at ?? last_run?.started_at),
      next: ({ next_run_at }) => moment(next_run_at),
    },
    wide: {
      result: ({ last_run }) => (last_run ? colouredStatus(cli.style, last_run.status) : '–'),
      folder: ({ folder }) => folder ?? '–',
      source: ({ source }) => source.name,
      destination: ({ destination }) => destination.name,
      id: ({ id }) => id,
    },
  });
}

export async function showConnection(cli: Cli, flags: { json: boolean }, wanted: string): Promise<void> {
  show(cli, await findConnection(await cli.api(), wanted), flags.json);
}

export async function createConnection(cli: Cli, flags: CreatingConnection): Promise<void> {
  const api = await cli.api();
  const source = await selectAccountConnector(cli, { api, connector_type: 'source', wanted: flags.source });
  const destination = await selectAccountConnector(cli, {
    api,
    connector_type: 'destination',
    wanted: flags.destination,
  });
  const initial = `${source.name} to ${destination.name}`;
  const name = flags.name ?? (cli.interactive ? await askText(cli, { message: 'Name', initial }) : initial);
  const created = await api.connections.create.mutate({
    name,
    source_id: source.id,
    destination_id: destination.id,
    ...(flags.schema && { destination_schema: flags.schema }),
    ...(flags.folder && { folder: flags.folder }),
    ...scheduleOf(flags),
    ...(flags.stream && { streams: flags.stream.map((stream) => ({ name: stream })) }),
    run_immediately: flags.run,
  });
  show(cli, created, flags.json);
}

export async function updateConnection(cli: Cli, flags: ChangingConnection, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id, revision } = await findConnection(api, wanted);
  const changes = {
    ...(flags.name !== undefined && { name: flags.name }),
    ...(flags.description !== undefined && { description: flags.description || null }),
    ...(flags.schema !== undefined && { destination_schema: flags.schema || null }),
    ...(flags.prefix !== undefined && { table_prefix: flags.prefix }),
    ...(flags.folder !== undefined && { folder: flags.folder || null }),
    ...(flags.tag && { tags: flags.tag.filter((tag) => tag !== '') }),
    ...(flags.stream && { streams: flags.stream.map((name) => ({ name, selected: true })), streams_mode: 'replace' }),
    ...changedSchedule(flags),
    ...Object.fromEntries((flags.set ?? []).map((pair) => pairOf('--set', pair))),
  };
  if (Object.keys(changes).length === 0)
    throw new UsageError('Nothing to change. `connections update --help` lists the settings');
  // The service validates the settings.
  show(cli, await api.connections.update.mutate({ ...changes, connection_id: id, revision } as never), flags.json);
}

function changedSchedule({ manual, cron, every, continuous, timezone }: ChangingConnection) {
  if (!manual) return scheduleOf({ cron, every, continuous, timezone });
  if (continuous || cron !== undefined || every !== undefined)
    throw new UsageError('Use one of --manual, --continuous, --cron and --every');
  return { schedule: { type: 'manual' as const } };
}

type ScheduleFlags = Pick<CreatingConnection, 'cron' | 'every' | 'continuous' | 'timezone'>;

function scheduleOf({ cron, every, continuous, timezone: zone }: ScheduleFlags) {
  if (zone !== undefined && !continuous && cron === undefined && every === undefined)
    throw new UsageError('--timezone needs --cron or --every');
  const timezone = zone ?? 'UTC';
  if (continuous && (cron ?? every) !== undefined) throw new UsageError('Use --continuous without --cron and --every');
  if (continuous) return { schedule: { type: 'continuous' as const, timezone } };
  if (cron !== undefined && every !== undefined) throw new UsageError('Use either --cron or --every, not both');
  if (cron !== undefined) return { schedule: { type: 'cron' as const, cron_expression: cron, timezone } };
  // The service validates the interval.
  if (every !== undefined) return { schedule: { type: 'interval' as const, interval_minutes: every as 60, timezone } };
  return {};
}

async function selectAccountConnector(
  cli: Cli,
  { api, connector_type, wanted }: { api: ApiClient; connector_type: 'source' | 'destination'; wanted?: string },
) {
  const all = await api.account_connectors.list.query({ connector_type });
  if (wanted !== undefined) return pick(all, wanted, connector_type);
  if (all.length === 0)
    throw new UsageError(`No ${connector_type}s yet. Create one with \`${connector_type}s create\``);
  const message = connector_type === 'source' ? 'Source' : 'Destination';
  const choices = Object.fromEntries(all.map(({ id, name }) => [id, name]));
  return pick(all, await askChoice(cli, { message, hint: `use --${connector_type}` }, choices), connector_type);
}

export async function pauseConnection(
  cli: Cli,
  flags: { json: boolean; stop: boolean },
  wanted: string,
): Promise<void> {
  const api = await cli.api();
  const { id } = await findConnection(api, wanted);
  const stop_active_run = flags.stop || undefined;
  show(cli, await api.connections.update.mutate({ connection_id: id, status: 'paused', stop_active_run }), flags.json);
}

export async function resumeConnection(cli: Cli, flags: { json: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id } = await findConnection(api, wanted);
  show(cli, await api.connections.update.mutate({ connection_id: id, status: 'active' }), flags.json);
}

export async function deleteConnection(cli: Cli, flags: { yes: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id, name } = pickWhole(await api.connections.list.query(), wanted, 'connection');
  await requireConfirmation(cli, { yes: flags.yes, message: `Delete the connection "${name}"?` });
  await api.connections.delete.mutate({ connection_id: id });
  cli.print(`Deleted: ${name}`);
}

/** Renames a folder, or moves it with all of its connections. */
export async function moveFolder(cli: Cli, flags: { json: boolean }, from: string, to: string): Promise<void> {
  const api = await cli.api();
  const moved = await api.connections.moveFolder.mutate({ from, to: to || null });
  if (flags.json) cli.document = moved;
  else cli.print(`Moved ${plural(moved.connections, 'connection')} from ${from} to ${to || 'no folder'}`);
}

export async function refreshConnectionCatalog(cli: Cli, _flags: object, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id, name } = await findConnection(api, wanted);
  await api.connections.updateCatalog.mutate({ connection_id: id });
  cli.print(`Refreshing the catalog of "${name}"; \`connections show\` shows when it was last refreshed`);
}

const MAX_STREAMS = 20;
const streamLine = ({ namespace, name, sync_mode, destination_sync_mode }: Connection['streams'][number]) =>
  `${namespace ? `${namespace}.` : ''}${name}: ${sync_mode}, ${destination_sync_mode}`;

const lastRunLine = ({ status, rows_loaded, error }: NonNullable<Connection['last_run']>) =>
  status === 'skipped' && error ? `${status}: ${error.message}` : `${status}, ${plural(rows_loaded, 'row')}`;

function show(cli: Cli, one: Connection, json: boolean): void {
  const selected = one.streams.filter((stream) => stream.selected);
  showThing(cli, one, {
    json,
    lines: {
      name: one.name,
      id: one.id,
      status: colouredStatus(cli.style, one.status) + (one.status_reason ? ` (${one.status_reason})` : ''),
      health: colouredStatus(cli.style, one.health),
      ...(one.folder !== null && { folder: one.folder }),
      source: one.source.name,
      destination: one.destination.name + (one.destination_schema ? `, schema ${one.destination_schema}` : ''),
      schedule: one.schedule.description,
      next: moment(one.next_run_at),
      'last run': one.last_run ? lastRunLine(one.last_run) : '–',
      catalog: `${moment(one.catalog_refreshed_at)}, ${one.schema_change_status}`,
      streams: firstLines(selected.map(streamLine).join('\n'), MAX_STREAMS) || '–',
    },
  });
}
