import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { CommandError } from '../exit.ts';
import { followRun } from '../follow.ts';
import { colouredStatus, duration, moment, number } from '../style.ts';
import { showList, showThing, table } from '../table.ts';
import { findConnection } from './connections.ts';
import type { Run } from '../run.ts';

const ID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const DEFAULT_LIMIT = 20;
const PAGE = 200;

/** Accepts a run id, CONNECTION#NUMBER, or CONNECTION for its latest run. */
export async function findRun(api: ApiClient, wanted: string): Promise<Run> {
  if (ID.test(wanted)) {
    const known = await api.runs.get.query({ connection_run_id: wanted }).catch((error: unknown) => {
      if ((error as { status?: number }).status === 404) return null;
      throw error;
    });
    if (known) return known.run;
  }
  const [, name = wanted, digits] = /^(.+)#(\d+)$/.exec(wanted) ?? [];
  const { id, name: connection } = await findConnection(api, name);
  const run =
    digits === undefined
      ? (await api.runs.list.query({ connection_id: id, limit: 1 }))[0]
      : await numbered(api, id, Number(digits));
  if (run) return run;
  throw new CommandError(
    'not_found',
    digits ? `"${connection}" has no run #${digits}` : `"${connection}" has no runs yet`,
  );
}

/** Pages are in descending order of number, so the search can end early. */
async function numbered(api: ApiClient, connection_id: string, wanted: number): Promise<Run | undefined> {
  for (let offset = 0; ; offset += PAGE) {
    const page = await api.runs.list.query({ connection_id, limit: PAGE, offset });
    const found = page.find(({ number: own }) => own === wanted);
    if (found || page.length < PAGE || page.at(-1)!.number < wanted) return found;
  }
}

export async function startRun(cli: Cli, flags: { json: boolean; follow: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id, name } = await findConnection(api, wanted);
  const connection_run_id = await api.runs.run.mutate({ connection_id: id });
  if (connection_run_id === null) return cli.print('Nothing to run');
  await started(cli, { api, flags, run: { connection_id: id, id: connection_run_id }, name });
}

export async function rerun(cli: Cli, flags: { json: boolean; follow: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  const old = await findRun(api, wanted);
  const id = await api.runs.rerun.mutate({ connection_run_id: old.id });
  await started(cli, { api, flags, run: { connection_id: old.connection_id, id }, name: wanted });
}

async function started(
  cli: Cli,
  {
    api,
    flags,
    run,
    name,
  }: {
    api: ApiClient;
    flags: { json: boolean; follow: boolean };
    run: { connection_id: string; id: string };
    name: string;
  },
): Promise<void> {
  if (flags.follow) return followRun(cli, { api, run, json: flags.json });
  if (flags.json) cli.document = { connection_run_id: run.id };
  else cli.print(`Started: ${name}, run ${run.id}`);
}

export async function followExisting(cli: Cli, flags: { json: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  await followRun(cli, { api, run: await findRun(api, wanted), json: flags.json });
}

export async function stopRun(cli: Cli, flags: { json: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id } = await findRun(api, wanted);
  const stopped = await api.runs.stop.mutate({ connection_run_id: id });
  if (flags.json) {
    cli.document = { connection_run_id: stopped };
    return;
  }
  cli.print(stopped === null ? 'The run has already ended' : `Stop requested: run ${id}`);
}

export async function listRuns(
  cli: Cli,
  flags: { json: boolean; limit?: number; status?: readonly string[] },
  wanted: string,
): Promise<void> {
  const api = await cli.api();
  const { id } = await findConnection(api, wanted);
  // The service validates the status.
  const status = flags.status && ([...flags.status] as Run['status'][]);
  const runs = await api.runs.list.query({ connection_id: id, limit: flags.limit ?? DEFAULT_LIMIT, status });
  showList(cli, runs, {
    json: flags.json,
    empty: 'No runs yet',
    columns: {
      '#': ({ number: own }) => String(own),
      status: (run) => colouredStatus(cli.style, run.status),
      started: ({ started_at, queued_at }) => moment(started_at ?? queued_at),
      duration: ({ duration_ms }) => duration(duration_ms),
      rows: ({ rows_loaded }) => number(rows_loaded),
      error: ({ error }) => error?.message ?? '',
    },
    wide: { type: ({ run_type, trigger_type }) => `${run_type}, ${trigger_type}`, id: (run) => run.id },
  });
}

export async function showRun(cli: Cli, flags: { json: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  const { run, stream_runs } = await api.runs.get.query({ connection_run_id: (await findRun(api, wanted)).id });
  showThing(
    cli,
    { run, stream_runs },
    {
      json: flags.json,
      lines: {
        run: `#${run.number}, ${run.id}`,
        status: colouredStatus(cli.style, run.status),
        type: `${run.run_type}, ${run.trigger_type}${run.triggered_by ? ` by ${run.triggered_by.name}` : ''}`,
        window: run.window_start ? `${run.window_start} to ${run.window_end}` : '–',
        started: `${moment(run.started_at)}, duration ${duration(run.duration_ms)}`,
        rows: `${number(run.rows_read)} read, ${number(run.rows_loaded)} loaded, ${number(run.rows_rejected)} rejected`,
        credits: number(run.credits_used),
        error: run.error ? `${run.error.code}: ${run.error.message}` : '–',
      },
    },
  );
  if (flags.json) return;
  cli.print(
    table(cli, stream_runs, {
      columns: {
        stream: ({ namespace, stream_name }) => (namespace ? `${namespace}.${stream_name}` : stream_name),
        status: ({ status }) => colouredStatus(cli.style, status),
        read: ({ rows_read }) => number(rows_read),
        loaded: ({ rows_loaded }) => number(rows_loaded),
        duration: ({ duration_ms }) => duration(duration_ms),
        error: ({ error }) => error?.message ?? '',
      },
    }),
  );
}

export interface LogOfRun {
  level?: 'info' | 'warning' | 'error';
  stream?: string;
}

const COLOURS = { info: 'dim', warning: 'yellow', error: 'red' } as const;

export async function showLog(cli: Cli, flags: { json: boolean } & LogOfRun, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id, connection_id } = await findRun(api, wanted);
  const lines = await api.runs.log.query({ connection_id, connection_run_id: id, level: flags.level });
  const matching = flags.stream === undefined ? lines : lines.filter((line) => line.stream_name === flags.stream);
  if (flags.json) {
    cli.document = matching;
    return;
  }
  for (const { at, level, stream_name, message } of matching) {
    const where = stream_name === null ? '' : `${stream_name}: `;
    cli.print(`${cli.style('dim', at)}  ${cli.style(COLOURS[level], level.padEnd(7))}  ${where}${message}`);
  }
  if (matching.length === 0) cli.note('No matching lines');
}
