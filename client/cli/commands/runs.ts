import { buildCommand, buildRouteMap } from '@stricli/core';
import type { LogFilter } from '../actions/logs.ts';
import type { LogOfRun } from '../actions/runs.ts';
import type { Launching, Planning } from '../actions/custom-runs.ts';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import {
  countFlag,
  help,
  json,
  oneConnection,
  oneRun,
  proposing,
  shown,
  shownAliases,
  switchFlag,
  textFlag,
  textsFlag,
  withCli,
  yes,
} from './parameters.ts';
import type { Run } from '../run.ts';

const follow = switchFlag('Follow the run until it ends; Ctrl-C requests a stop, a second Ctrl-C detaches');
const RUN_STATUSES: Run['status'][] = [
  'queued',
  'running',
  'stopping',
  'succeeded',
  'partially_succeeded',
  'failed',
  'stopped',
  'skipped',
];
const actions = () => import('../actions/runs.ts');

export const run = buildCommand<Shown & { follow: boolean }, [string], Cli>({
  loader: async () => withCli((await actions()).startRun),
  parameters: { flags: { ...shown, follow }, aliases: { ...shownAliases, f: 'follow' }, positional: oneConnection },
  docs: help('Run a connection now', {
    about: 'With --follow, the exit code is the result: 0 succeeded, 1 failed, 6 partially succeeded, 7 stopped.',
    examples: ['run "Shop to analytics"', 'run "Shop to analytics" --follow'],
  }),
});

const rerun = buildCommand<Shown & { follow: boolean }, [string], Cli>({
  loader: async () => withCli((await actions()).rerun),
  parameters: { flags: { ...shown, follow }, aliases: { ...shownAliases, f: 'follow' }, positional: oneRun },
  docs: help('Rerun a finished run: the streams that did not succeed, or all of a successful one', {
    examples: ['runs rerun "Shop to analytics"', 'runs rerun "Shop to analytics#12" --follow'],
  }),
});

export const runs = buildRouteMap({
  routes: {
    list: buildCommand<Shown & { limit?: number; status?: readonly string[] }, [string], Cli>({
      loader: async () => withCli((await actions()).listRuns),
      parameters: {
        flags: {
          ...shown,
          limit: countFlag('Number of runs; default 20'),
          status: { ...textsFlag('Filter by status; repeatable', 'status'), ...proposing(() => RUN_STATUSES) },
        },
        aliases: shownAliases,
        positional: oneConnection,
      },
      docs: help('List the runs of a connection, newest first', {
        examples: ['runs list "Shop to analytics" --status failed', 'runs list "Shop to analytics" --limit 100 -o csv'],
      }),
    }),
    show: buildCommand<Shown, [string], Cli>({
      loader: async () => withCli((await actions()).showRun),
      parameters: { flags: shown, aliases: shownAliases, positional: oneRun },
      docs: help('Show a run and its streams', {
        examples: ['runs show "Shop to analytics"', 'runs show "Shop to analytics#12" -o yaml'],
      }),
    }),
    log: buildCommand<Shown & LogOfRun, [string], Cli>({
      loader: async () => withCli((await actions()).showLog),
      parameters: {
        flags: {
          ...shown,
          level: { kind: 'enum', values: ['info', 'warning', 'error'], brief: 'Lowest level', optional: true },
          stream: textFlag('Only lines of this stream', 'name'),
        },
        aliases: shownAliases,
        positional: oneRun,
      },
      docs: help('Show what the service did in a run, in words', {
        examples: ['runs log "Shop to analytics"', 'runs log "Shop to analytics#12" --level warning'],
      }),
    }),
    follow: buildCommand<Shown, [string], Cli>({
      loader: async () => withCli((await actions()).followExisting),
      parameters: { flags: shown, aliases: shownAliases, positional: oneRun },
      docs: help('Follow a run until it ends', { examples: ['runs follow "Shop to analytics"'] }),
    }),
    stop: buildCommand<Shown, [string], Cli>({
      loader: async () => withCli((await actions()).stopRun),
      parameters: { flags: shown, aliases: shownAliases, positional: oneRun },
      docs: help('Stop a run', { examples: ['runs stop "Shop to analytics"'] }),
    }),
    rerun,
  },
  docs: { brief: 'Manage runs: list, show, log, follow, stop, rerun' },
});

export const logs = buildCommand<LogFilter, [string], Cli>({
  loader: async () => withCli((await import('../actions/logs.ts')).logs),
  parameters: {
    flags: {
      json,
      side: { kind: 'enum', values: ['source', 'destination'], brief: 'Filter by side', optional: true },
      stream: textsFlag('Filter by stream; repeatable', 'name'),
      status: textsFlag('Filter by response status: 404, 5xx, or error for every failure; repeatable', 'status'),
      bodies: switchFlag('Include headers and bodies'),
    },
    positional: oneRun,
  },
  docs: help('Show the network log of a run', {
    examples: ['logs "Shop to analytics" --status error', 'logs "Shop to analytics#12" --stream orders --bodies'],
  }),
});

const planning = {
  start: textFlag('First day', 'YYYY-MM-DD'),
  end: textFlag('Last day, inclusive; default today', 'YYYY-MM-DD'),
  split: {
    kind: 'enum',
    values: ['none', 'day', 'week', 'month', 'quarter', 'year'],
    brief: 'Split the date range into chunks of this unit',
    optional: true,
  },
  size: countFlag('Number of units per chunk; default 1'),
  stream: textsFlag('Stream to load; repeatable; default all', 'name'),
  mode: {
    kind: 'enum',
    values: ['backfill', 'incremental', 'full_refresh'],
    brief: 'Read mode; default backfill',
    optional: true,
  },
  reprocess: {
    kind: 'enum',
    values: ['all', 'missing', 'failed'],
    brief: 'Chunks to run; default all',
    optional: true,
  },
  parallel: countFlag('Runs in parallel; default 1'),
} as const;

export const plan = buildCommand<Shown & Planning, [string], Cli>({
  loader: async () => withCli((await import('../actions/custom-runs.ts')).planRun),
  parameters: { flags: { ...shown, ...planning }, aliases: shownAliases, positional: oneConnection },
  docs: help('Preview a custom run without starting it', {
    examples: ['plan "Shop to analytics" --start 2026-01-01 --end 2026-03-31 --split month'],
  }),
});

export const launch = buildCommand<Shown & Launching, [string], Cli>({
  loader: async () => withCli((await import('../actions/custom-runs.ts')).launchRun),
  parameters: {
    flags: { ...shown, yes, ...planning, plan: textFlag('Id of a plan created by `plan`', 'id') },
    positional: oneConnection,
    aliases: { ...shownAliases, y: 'yes' },
  },
  docs: help('Plan a custom run and start it after confirmation', {
    examples: ['launch "Shop to analytics" --start 2026-01-01 --split week --reprocess missing'],
  }),
});
