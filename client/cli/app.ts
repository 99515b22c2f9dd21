import { buildApplication, buildRouteMap, text_en } from '@stricli/core';
import packageFile from '../../package.json' with { type: 'json' };
import { keys, serviceAccounts, usage, users } from './commands/account.ts';
import { cases, events, notifications, triggers } from './commands/automation.ts';
import { audit } from './commands/audit.ts';
import { connections } from './commands/connections.ts';
import { accountConnectors, connectors } from './commands/connectors.ts';
import { apply, drift, exportFile } from './commands/files.ts';
import { launch, logs, plan, run, runs } from './commands/runs.ts';
import { migrate } from './commands/migrate.ts';
import { api, openPage, status } from './commands/service.ts';
import { templates } from './commands/templates.ts';
import { completion, contexts, login, logout, whoami } from './commands/session.ts';
import { verify } from './commands/verify.ts';
import { views } from './commands/views.ts';
import type { Cli } from './context.ts';
import { describeFailure, exitCodeOf } from './exit.ts';
import { printable } from './style.ts';

const root = buildRouteMap<string, Cli>({
  routes: {
    login,
    logout,
    whoami,
    contexts,
    status,
    connectors,
    sources: accountConnectors('source'),
    destinations: accountConnectors('destination'),
    connections,
    views,
    run,
    runs,
    logs,
    plan,
    launch,
    verify,
    migrate,
    apply,
    export: exportFile,
    drift,
    templates,
    triggers,
    notifications,
    cases,
    events,
    users,
    keys,
    serviceAccounts,
    usage,
    audit,
    open: openPage,
    api,
    completion,
  },
  docs: {
    brief: 'Manage data pipelines from the terminal',
    fullDescription: [
      'Manage data pipelines from the terminal.',
      '',
      'Before any command, --context NAME selects another service that you are signed in to; so does',
      'DATA_PIPELINES_CONTEXT.',
      '',
      'Exit codes: 0 success, 1 failed or rejected, 2 invalid usage, 3 not signed in or not permitted, 4 not found,',
      '5 service unreachable, 6 run partially succeeded, 7 run stopped, 130 interrupted by Ctrl-C.',
    ].join('\n'),
  },
});

const HELP = 'Add --help to see the usage';

/** Routes and flags only: each command loads its action when it runs, which keeps start-up fast. */
export const app = buildApplication(root, {
  name: 'data-pipelines',
  versionInfo: { currentVersion: packageFile.version },
  scanner: { caseStyle: 'allow-kebab-for-camel' },
  // The flags of a command are listed below its usage line, which would be longer than any terminal with all of them.
  documentation: {
    caseStyle: 'convert-camel-to-kebab',
    useAliasInUsageLine: false,
    onlyRequiredInUsageLine: true,
  },
  completion: { includeAliases: false },
  determineExitCode: exitCodeOf,
  localization: {
    loadText: () => ({
      ...text_en,
      exceptionWhileParsingArguments(error, ansiColor) {
        return `${text_en.exceptionWhileParsingArguments.call(this, error, ansiColor)}\n${HELP}`;
      },
      noCommandRegisteredForInput: (given) => `${text_en.noCommandRegisteredForInput(given)}\n${HELP}`,
      exceptionWhileRunningCommand: (error) => printable(describeFailure(error)),
    }),
  },
});
