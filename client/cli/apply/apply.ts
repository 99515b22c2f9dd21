import { requireConfirmation } from '../actions/session.ts';
import type { Cli } from '../context.ts';
import { describeFailure, CommandError, UsageError } from '../exit.ts';
import { readText } from '../read-document.ts';
import { type Current, findNamed, readCurrent } from './current.ts';
import { readPipelines } from './document.ts';
import { applyStep } from './execute.ts';
import { planSteps, type Step } from './plan.ts';

export interface Applying {
  file: string;
  json: boolean;
  yes: boolean;
  dryRun: boolean;
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
  const wanted = readPipelines(await readText(flags.file), flags.file);
  const api = await cli.api();
  const current = await readCurrent(api);
  const { steps, unchanged } = await planSteps(api, { wanted, current, options: flags });
  const results = steps.map((step): StepResult => ({ step, status: 'planned', error: null }));
  const print = flags.json ? () => {} : cli.print;
  printPlan(cli, { steps, unchanged, file: flags.file, print });
  try {
    if (steps.length === 0) return;
    if (flags.dryRun) throw new CommandError('failed', 'No changes applied (--dry-run)');
    if (flags.json && !flags.yes) throw new UsageError('--json does not prompt: add --yes or --dry-run');
    await requireConfirmation(cli, { yes: flags.yes, message: 'Apply these changes?' });
    await applyAll(cli, { results, print, execute: (step) => applyStep(api, step, current) });
  } finally {
    if (flags.json) cli.document = documentOf(results, { current, unchanged, flags });
  }
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
  { current, unchanged, flags }: { current: Current; unchanged: number; flags: Applying },
) => ({
  file: flags.file,
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
