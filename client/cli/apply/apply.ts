import { requireConfirmation } from '../actions/session.ts';
import type { Cli } from '../context.ts';
import { CommandError, describeFailure, UsageError } from '../exit.ts';
import { readTexts, type TextFile } from '../read-document.ts';
import { type Current, findNamed, readCurrent } from './current.ts';
import { readAllPipelines, type Wanted } from './document.ts';
import { applyStep } from './execute.ts';
import { type PlanOptions, planSteps, type Step } from './plan.ts';
import { watchApplied } from './watch.ts';
import { plannedStep, readPlan, requireSameSteps, type SavedPlan, savePlan } from './saved-plan.ts';

export interface Applying {
  file?: string;
  plan?: string;
  savePlan?: string;
  json: boolean;
  yes: boolean;
  dryRun: boolean;
  report: boolean;
  watch: boolean;
  prune: boolean;
  rotateSecrets: boolean;
}

/** A step and its result. */
interface StepResult {
  step: Step;
  status: 'planned' | 'done' | 'failed';
  error: unknown;
}

/** Shows the differences between file and account, asks, and applies them. */
export async function apply(cli: Cli, flags: Applying): Promise<void> {
  try {
    await planAndApply(cli, flags);
  } catch (error) {
    // In a dry run, 2 means changes and every error is 1.
    throw flags.dryRun && error instanceof UsageError ? new CommandError('failed', error.message) : error;
  }
}

async function planAndApply(cli: Cli, flags: Applying): Promise<void> {
  const { files, options, saved } = await readInput(cli, flags);
  const file = flags.file ?? saved!.file;
  const { wanted, owners } = readAllPipelines(files);
  const api = await cli.api();
  const withPeople = wanted.some(({ kind }) => kind === 'roles' || kind === 'users');
  const current = await readCurrent(api, { withPeople });
  const { steps, unchanged } = await planSteps(api, { wanted, owners, current, options });
  if (saved) requireSameSteps(saved, steps);
  const results = steps.map((step): StepResult => ({ step, status: 'planned', error: null }));
  const print = flags.json ? () => {} : cli.print;
  printPlan(cli, { steps, unchanged, file, print });
  if (flags.report) await reportDrift(cli, { file, owners, steps });
  try {
    if (flags.savePlan !== undefined) {
      savePlan(flags.savePlan, {
        version: 1,
        service: cli.login().url,
        created_at: new Date().toISOString(),
        file,
        files,
        ...options,
        steps: steps.map(plannedStep),
      });
      print(`Saved ${flags.savePlan}. Apply it with \`apply --plan ${flags.savePlan}\``);
    }
    if (flags.dryRun && steps.length > 0) throw new CommandError('changes', 'No changes applied (--dry-run)');
    if (flags.dryRun) return;
    if (!saved && steps.length > 0) await requireAgreement(cli, flags);
    await applyAll(cli, { results, print, execute: (step) => applyStep(api, step, current) });
    await watchFile(cli, flags, { file, prune: options.prune, wanted, current });
  } finally {
    if (flags.json) cli.document = documentOf(results, { current, unchanged, file, flags });
  }
}

interface Input {
  files: TextFile[];
  options: PlanOptions;
  saved: SavedPlan | null;
}

/** The files, or those of a saved plan together with its options. */
async function readInput(cli: Cli, flags: Applying): Promise<Input> {
  const { prune, rotateSecrets } = flags;
  if ((flags.plan === undefined) === (flags.file === undefined)) throw new UsageError('Use either --file or --plan');
  if (flags.savePlan !== undefined && !flags.dryRun) throw new UsageError('--save-plan needs --dry-run');
  if (flags.watch && flags.dryRun) throw new UsageError('--watch needs an apply without --dry-run');
  if (flags.report && !flags.dryRun) throw new UsageError('--report needs --dry-run');
  if (flags.plan === undefined)
    return { files: await readTexts(flags.file!), options: { prune, rotateSecrets }, saved: null };
  if (prune || rotateSecrets) throw new UsageError('A saved plan has its own options: use --plan without others');
  const saved = await readPlan(flags.plan, cli.login().url);
  const options = { prune: saved.prune, rotateSecrets: saved.rotateSecrets };
  return { files: saved.files, options, saved };
}

/** A file that the service compares already is kept up to date; if that fails, the changes are applied all the same. */
async function watchFile(
  cli: Cli,
  { watch, json }: Applying,
  applied: { file: string; prune: boolean; wanted: Wanted[]; current: Current },
): Promise<void> {
  const api = await cli.api();
  try {
    const count = await watchApplied(api, { ...applied, file: applied.file.slice(0, MAX_LENGTH), watch });
    if (watch && !json) cli.print(`The service compares ${count} item${count === 1 ? '' : 's'} every 15 minutes`);
  } catch (error) {
    if (watch) throw error;
    cli.note(`The service still compares with what was applied before: ${describeFailure(error)}`);
  }
}

const MAX_REPORTED = 1000;
const MAX_LENGTH = 500;

/** Leaves an event in the account, from which triggers open and resolve a case. */
async function reportDrift(
  cli: Cli,
  { file, owners, steps }: { file: string; owners: (string | null)[]; steps: Step[] },
): Promise<void> {
  const [owner = null, ...others] = new Set(owners);
  await (await cli.api()).automation.reportDrift.mutate({
    file: file.slice(0, MAX_LENGTH),
    owner: others.length === 0 ? owner : null,
    changes: steps.slice(0, MAX_REPORTED).map((step) => nameOf(step).slice(0, MAX_LENGTH)),
  });
}

async function requireAgreement(cli: Cli, { json, yes }: Applying): Promise<void> {
  if (json && !yes) throw new UsageError('--json does not prompt: add --yes or --dry-run');
  await requireConfirmation(cli, { yes, message: 'Apply these changes?' });
}

interface PlanSummary {
  steps: Step[];
  unchanged: number;
  file: string;
  print(text: string): void;
}

function printPlan(cli: Cli, { steps, unchanged, file, print }: PlanSummary): void {
  if (steps.length === 0) return print(`No changes: ${unchanged} items match ${file}`);
  for (const step of steps) print(describe(cli, step));
  const count = (action: Step['action']) => steps.filter((step) => step.action === action).length;
  print(
    `${count('create')} to create, ${count('update')} to update, ${count('delete')} to delete, ${unchanged} unchanged`,
  );
}

async function applyAll(
  cli: Cli,
  {
    results,
    print,
    execute,
  }: {
    results: StepResult[];
    print(text: string): void;
    execute(step: Step): Promise<void>;
  },
): Promise<void> {
  for (const [done, one] of results.entries()) {
    try {
      await execute(one.step);
      one.status = 'done';
    } catch (error) {
      Object.assign(one, { status: 'failed', error });
      const rest = results.slice(done).map(({ step }) => `  ${nameOf(step)}`);
      cli.note(`Applied ${done} of ${results.length} changes. Not applied:\n${rest.join('\n')}`);
      throw error instanceof CommandError ? new CommandError('failed', describeFailure(error)) : error;
    }
    print(`${cli.style('green', 'done')}  ${nameOf(one.step)}`);
  }
}

/** The document of --json. Steps omit the body of a new item because it contains secrets. */
const documentOf = (
  results: StepResult[],
  { current, unchanged, file, flags }: { current: Current; unchanged: number; file: string; flags: Applying },
) => ({
  file,
  dry_run: flags.dryRun,
  unchanged,
  steps: results.map(({ step, status, error }) => {
    const { kind, name } = thingOf(step);
    const id = step.action === 'create' ? (findNamed(current, kind, name)?.id ?? null) : step.id;
    const changes = step.action === 'update' ? step.changes : [];
    return {
      action: step.action,
      kind,
      name,
      id,
      changes,
      status,
      error: error === null ? null : describeFailure(error),
    };
  }),
});

const thingOf = (step: Step) => (step.action === 'delete' ? step : step.wanted);

const nameOf = (step: Step): string => {
  const { kind, name } = thingOf(step);
  return `${step.action} ${kind.slice(0, -1)} "${name}"`;
};

function describe(cli: Cli, step: Step): string {
  if (step.action === 'create') return cli.style('green', `+ ${nameOf(step)}`);
  if (step.action === 'delete') return cli.style('red', `- ${nameOf(step)}`);
  const text = (value: unknown) => JSON.stringify(value) ?? 'none';
  const lines = step.changes.map(({ path, from, to }) => `    ${path}: ${text(from)} → ${text(to)}`);
  return [cli.style('yellow', `~ ${nameOf(step)}`), ...lines].join('\n');
}
