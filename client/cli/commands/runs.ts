import { buildCommand, buildRouteMap } from '@stricli/core';
import type { LogFilter } from '../actions/logs.ts';
import type { Launching, Planning } from '../actions/custom-runs.ts';
import type { Cli } from '../context.ts';
import { CONNECTION, countFlag, json, one, RUN, switchFlag, textFlag, textsFlag, yes, withCli } from './parameters.ts';

const follow = switchFlag('Show its progress until it ends; Ctrl-C asks it to stop, a second one leaves');
const actions = () => import('../actions/runs.ts');

export const run = buildCommand<{ json: boolean; follow: boolean }, [string], Cli>({
  loader: async () => withCli((await actions()).startRun),
  parameters: { flags: { json, follow }, aliases: { f: 'follow' }, positional: one('connection', CONNECTION) },
  docs: {
    brief: 'Run a connection now',
    fullDescription:
      'With --follow the exit code tells how it ended: 0 succeeded, 1 failed, 6 partially succeeded, 7 stopped.',
  },
});

const rerun = buildCommand<{ json: boolean; follow: boolean }, [string], Cli>({
  loader: async () => withCli((await actions()).rerun),
  parameters: { flags: { json, follow }, aliases: { f: 'follow' }, positional: one('run', RUN) },
  docs: { brief: 'Run again with the streams of a run that has ended' },
});

export const runs = buildRouteMap({
  routes: {
    list: buildCommand<{ json: boolean; limit?: number; status?: readonly string[] }, [string], Cli>({
      loader: async () => withCli((await actions()).listRuns),
      parameters: {
        flags: { json, limit: countFlag('How many; default 20'), status: textsFlag('Only in this state', 'status') },
        positional: one('connection', CONNECTION),
      },
      docs: { brief: 'Runs of a connection, newest first' },
    }),
    show: buildCommand<{ json: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).showRun),
      parameters: { flags: { json }, positional: one('run', RUN) },
      docs: { brief: 'One run with its streams' },
    }),
    follow: buildCommand<{ json: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).followExisting),
      parameters: { flags: { json }, positional: one('run', RUN) },
      docs: { brief: 'Show the progress of a run until it ends' },
    }),
    stop: buildCommand<{ json: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).stopRun),
      parameters: { flags: { json }, positional: one('run', RUN) },
      docs: { brief: 'Ask a run to stop' },
    }),
    rerun,
  },
  docs: { brief: 'Runs: list, show, follow, stop, rerun' },
});

export const logs = buildCommand<LogFilter, [string], Cli>({
  loader: async () => withCli((await import('../actions/logs.ts')).logs),
  parameters: {
    flags: {
      json,
      side: { kind: 'enum', values: ['source', 'destination'], brief: 'Only this side', optional: true },
      stream: textsFlag('Only this stream', 'name'),
      status: textsFlag('Only these answers: 404, 5xx, or error for all that failed', 'status'),
      bodies: switchFlag('With headers and bodies'),
    },
    positional: one('run', RUN),
  },
  docs: { brief: 'What a run sent and got: its network log' },
});

const planning = {
  start: textFlag('First day', 'YYYY-MM-DD'),
  end: textFlag('Last day; default today', 'YYYY-MM-DD'),
  split: {
    kind: 'enum',
    values: ['none', 'day', 'week', 'month', 'quarter', 'year'],
    brief: 'One run for each of these',
    optional: true,
  },
  size: countFlag('How many of them a run'),
  stream: textsFlag('Only these streams', 'name'),
  mode: {
    kind: 'enum',
    values: ['backfill', 'incremental', 'full_refresh'],
    brief: 'Default: backfill',
    optional: true,
  },
  reprocess: {
    kind: 'enum',
    values: ['all', 'missing', 'failed'],
    brief: 'Which chunks; default: all',
    optional: true,
  },
  parallel: countFlag('Runs at a time; default 1'),
} as const;

export const plan = buildCommand<Planning, [string], Cli>({
  loader: async () => withCli((await import('../actions/custom-runs.ts')).planRun),
  parameters: { flags: { json, ...planning }, positional: one('connection', CONNECTION) },
  docs: { brief: 'What a custom run would do; starts nothing' },
});

export const launch = buildCommand<Launching, [string], Cli>({
  loader: async () => withCli((await import('../actions/custom-runs.ts')).launchRun),
  parameters: {
    flags: { json, yes, ...planning, plan: textFlag('A plan that was made by `plan`', 'id') },
    positional: one('connection', CONNECTION),
    aliases: { y: 'yes' },
  },
  docs: { brief: 'Plan a custom run, show it, and start it' },
});
