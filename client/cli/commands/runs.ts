import { buildCommand, buildRouteMap } from '@stricli/core';
import type { LogFilter } from '../actions/logs.ts';
import type { Launching, Planning } from '../actions/custom-runs.ts';
import type { Cli } from '../context.ts';
import { CONNECTION, countFlag, json, one, RUN, switchFlag, textFlag, textsFlag, yes, withCli } from './parameters.ts';

const follow = switchFlag('Follow the run until it ends; Ctrl-C requests a stop, a second Ctrl-C detaches');
const actions = () => import('../actions/runs.ts');

export const run = buildCommand<{ json: boolean; follow: boolean }, [string], Cli>({
  loader: async () => withCli((await actions()).startRun),
  parameters: { flags: { json, follow }, aliases: { f: 'follow' }, positional: one('connection', CONNECTION) },
  docs: {
    brief: 'Run a connection now',
    fullDescription:
      'With --follow, the exit code is the result: 0 succeeded, 1 failed, 6 partially succeeded, 7 stopped.',
  },
});

const rerun = buildCommand<{ json: boolean; follow: boolean }, [string], Cli>({
  loader: async () => withCli((await actions()).rerun),
  parameters: { flags: { json, follow }, aliases: { f: 'follow' }, positional: one('run', RUN) },
  docs: { brief: 'Rerun a finished run: the streams that did not succeed, or all of a successful one' },
});

export const runs = buildRouteMap({
  routes: {
    list: buildCommand<{ json: boolean; limit?: number; status?: readonly string[] }, [string], Cli>({
      loader: async () => withCli((await actions()).listRuns),
      parameters: {
        flags: {
          json,
          limit: countFlag('Number of runs; default 20'),
          status: textsFlag('Filter by status; repeatable', 'status'),
        },
        positional: one('connection', CONNECTION),
      },
      docs: { brief: 'List the runs of a connection, newest first' },
    }),
    show: buildCommand<{ json: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).showRun),
      parameters: { flags: { json }, positional: one('run', RUN) },
      docs: { brief: 'Show a run and its streams' },
    }),
    follow: buildCommand<{ json: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).followExisting),
      parameters: { flags: { json }, positional: one('run', RUN) },
      docs: { brief: 'Follow a run until it ends' },
    }),
    stop: buildCommand<{ json: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).stopRun),
      parameters: { flags: { json }, positional: one('run', RUN) },
      docs: { brief: 'Stop a run' },
    }),
    rerun,
  },
  docs: { brief: 'Manage runs: list, show, follow, stop, rerun' },
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
    positional: one('run', RUN),
  },
  docs: { brief: 'Show the network log of a run' },
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

export const plan = buildCommand<Planning, [string], Cli>({
  loader: async () => withCli((await import('../actions/custom-runs.ts')).planRun),
  parameters: { flags: { json, ...planning }, positional: one('connection', CONNECTION) },
  docs: { brief: 'Preview a custom run without starting it' },
});

export const launch = buildCommand<Launching, [string], Cli>({
  loader: async () => withCli((await import('../actions/custom-runs.ts')).launchRun),
  parameters: {
    flags: { json, yes, ...planning, plan: textFlag('Id of a plan created by `plan`', 'id') },
    positional: one('connection', CONNECTION),
    aliases: { y: 'yes' },
  },
  docs: { brief: 'Plan a custom run and start it after confirmation' },
});
