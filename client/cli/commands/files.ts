import { buildCommand, buildRouteMap } from '@stricli/core';
import type { Applying } from '../apply/apply.ts';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import {
  help,
  type NoFlags,
  one,
  oneOrNone,
  type Propose,
  shown,
  shownAliases,
  switchFlag,
  textFlag,
  withCli,
  yes,
} from './parameters.ts';

export const apply = buildCommand<Applying, [], Cli>({
  loader: async () => withCli((await import('../apply/apply.ts')).apply),
  parameters: {
    flags: {
      file: textFlag('Pipeline file, or a folder of them; - reads standard input', 'path'),
      plan: textFlag('Apply a plan saved by --save-plan, if nothing has changed since', 'path'),
      savePlan: textFlag('With --dry-run, save the plan for a review', 'path'),
      yes,
      json: switchFlag('Print the steps and their results as JSON; never prompts'),
      dryRun: switchFlag(
        'Show the changes without applying them; exit code 0 without changes, 2 with changes, 1 for an error',
      ),
      report: switchFlag('With --dry-run, emit configuration_drifted or configuration_matched in the account'),
      watch: switchFlag('Let the service compare the account with what was applied, every 15 minutes'),
      prune: switchFlag('Delete what the file does not name, of the owner that the file names or else of no owner'),
      rotateSecrets: switchFlag('Send every secret again, including those that cannot be compared'),
    },
    aliases: { f: 'file', y: 'yes' },
  },
  docs: help('Apply a file of sources, destinations, connections, triggers, roles and users', {
    about:
      'Shows the differences, asks for confirmation, and applies them. Settings that the file omits stay unchanged.\n${NAME} in a value is replaced by the environment variable; write $${ for a literal ${.',
    examples: [
      'apply -f pipelines.yaml --dry-run',
      'apply -f pipelines.yaml --yes',
      'apply -f pipelines/ --dry-run --save-plan plan.json',
      'apply --plan plan.json',
      'apply -f pipelines.yaml --yes --watch',
      'apply -f pipelines.yaml --dry-run --report',
    ],
  }),
});

export const exportFile = buildCommand<{ output?: string; users: boolean; owner?: string }, [], Cli>({
  loader: async () => withCli((await import('../apply/export.ts')).exportPipelines),
  parameters: {
    flags: {
      output: textFlag('Output file; default standard output', 'path'),
      users: switchFlag('Include users and the roles of the account'),
      owner: textFlag('Only what has this owner, which the file then names', 'name'),
    },
    aliases: { o: 'output' },
  },
  docs: help('Export the account as a file for `apply`; secrets become ${NAME} placeholders', {
    examples: ['export -o pipelines.yaml', 'export --users -o account.yaml', 'export --owner shop-team -o shop.yaml'],
  }),
});

const actions = () => import('../actions/drift.ts');
const appliedFiles: Propose = async (cli) =>
  (await (await cli.api()).automation.listAppliedFiles.query({})).map(({ file }) => file);
const FILE = 'The path that was given to `apply`, or the id';

export const drift = buildRouteMap({
  routes: {
    list: buildCommand<Shown, [], Cli>({
      loader: async () => withCli((await actions()).listFiles),
      parameters: { flags: shown, aliases: shownAliases },
      docs: help('List the files with which the service compares the account', {
        about: '`apply --watch` adds one.',
        examples: ['drift list', "drift list --jq '.[] | select(.differences != []) | .file'"],
      }),
    }),
    compare: buildCommand<Shown, [string?], Cli>({
      loader: async () => withCli((await actions()).compareFiles),
      parameters: {
        flags: shown,
        aliases: shownAliases,
        positional: oneOrNone('file', `${FILE}; default all`, appliedFiles),
      },
      docs: help('Compare now; exit code 2 with differences', {
        examples: ['drift compare', 'drift compare pipelines.yaml -o json'],
      }),
    }),
    forget: buildCommand<NoFlags, [string], Cli>({
      loader: async () => withCli((await actions()).forgetFile),
      parameters: { positional: one('file', FILE, appliedFiles) },
      docs: help('Stop comparing the account with a file', { examples: ['drift forget pipelines.yaml'] }),
    }),
  },
  docs: { brief: 'Compare the account with applied files: list, compare, forget' },
});
