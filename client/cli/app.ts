import { buildApplication, buildRouteMap, text_en } from '@stricli/core';
import { cases, keys, triggers, usage, users } from './commands/account.ts';
import { connections } from './commands/connections.ts';
import { accountConnectors, connectors } from './commands/connectors.ts';
import { apply, exportFile } from './commands/files.ts';
import { launch, logs, plan, run, runs } from './commands/runs.ts';
import { completion, login, logout, whoami } from './commands/session.ts';
import type { Cli } from './context.ts';
import { describeFailure, exitCodeOf } from './exit.ts';

const root = buildRouteMap<string, Cli>({
  routes: {
    login,
    logout,
    whoami,
    connectors,
    sources: accountConnectors('source'),
    destinations: accountConnectors('destination'),
    connections,
    run,
    runs,
    logs,
    plan,
    launch,
    apply,
    export: exportFile,
    triggers,
    cases,
    users,
    keys,
    usage,
    completion,
  },
  docs: {
    brief: 'Data pipelines from the terminal',
    fullDescription: [
      'Data pipelines from the terminal.',
      '',
      'Exit codes: 0 done, 1 failed or refused, 2 wrong use, 3 not signed in or not allowed, 4 not found,',
      '5 no answer of the service, 6 run partially succeeded, 7 run stopped, 130 left by Ctrl-C.',
    ].join('\n'),
  },
});

/** Routes and their flags; what they do is loaded when it is called for. */
export const app = buildApplication(root, {
  name: 'data-pipelines',
  scanner: { caseStyle: 'allow-kebab-for-camel' },
  documentation: { caseStyle: 'convert-camel-to-kebab', useAliasInUsageLine: false },
  completion: { includeAliases: false },
  determineExitCode: exitCodeOf,
  localization: {
    loadText: () => ({ ...text_en, exceptionWhileRunningCommand: (error) => describeFailure(error) }),
  },
});
