import { requireConfirmation } from '../actions/session.ts';
import type { Cli } from '../context.ts';
import { describeFailure, Refused, UsageError } from '../exit.ts';
import { readText } from '../read-document.ts';
import { type Current, findNamed, readCurrent } from './current.ts';
import { readPipelines } from './document.ts';
import { takeStep } from './execute.ts';
import { makePlan, type Step } from './plan.ts';

export interface Applying {
  file: string;
  json: boolean;
  yes: boolean;
  dryRun: boolean;
  prune: boolean;
  rotateSecrets: boolean;
}

/** A step, and what became of it. */
interface Taken {
  step: Step;
  status: 'planned' | 'done' | 'failed';
  error: unknown;
}

/** Makes what there is be as the file says: difference, question, changes. */
export async function apply(cli: Cli, flags: Applying): Promise<void> {
  const wanted = readPipelines(await readText(flags.file), flags.file);
  const api = await cli.api();
  const current = await readCurrent(api);
  const { steps, unchanged } = await makePlan(api, { wanted, current, options: flags });
  const taken = steps.map((step): Taken => ({ step, status: 'planned', error: null }));
  const say = flags.json ? () => {} : cli.say;
  tellPlan(cli, { steps, unchanged, file: flags.file, say });
  try {
    if (steps.length === 0) return;
    if (flags.dryRun) throw new Refused('failed', 'Nothing was done (--dry-run)');
    if (flags.json && !flags.yes) throw new UsageError('With --json nobody is asked: add --yes or --dry-run');
    await requireConfirmation(cli, { yes: flags.yes, message: 'Do it?' });
    await takeAll(cli, { taken, say, take: (step) => takeStep(api, step, current) });
  } finally {
    if (flags.json) cli.say(JSON.stringify(documentOf(taken, { current, unchanged, flags }), null, 2));
  }
}

interface Plan {
  steps: Step[];
  unchanged: number;
  file: string;
  say(text: string): void;
}

function tellPlan(cli: Cli, { steps, unchanged, file, say }: Plan): void {
  if (steps.length === 0) return say(`No change: ${unchanged} things are as ${file} says`);
  for (const step of steps) say(describe(cli, step));
  const count = (action: Step['action']) => steps.filter((step) => step.action === action).length;
  say(
    `${count('create')} to create, ${count('update')} to change, ${count('delete')} to delete, ${unchanged} unchanged`,
  );
}

async function takeAll(
  cli: Cli,
  { taken, say, take }: { taken: Taken[]; say(text: string): void; take(step: Step): Promise<void> },
): Promise<void> {
  for (const [done, one] of taken.entries()) {
    try {
      await take(one.step);
      one.status = 'done';
    } catch (error) {
      Object.assign(one, { status: 'failed', error });
      const rest = taken.slice(done).map(({ step }) => `  ${nameOf(step)}`);
      cli.note(`Done: ${done} of ${taken.length}. Not done:\n${rest.join('\n')}`);
      throw error instanceof Refused ? new Refused('failed', describeFailure(error)) : error;
    }
    say(`${cli.style('green', 'done')}  ${nameOf(one.step)}`);
  }
}

/** What --json says. No step has what the file says of a new thing: its secrets are among that. */
const documentOf = (
  taken: Taken[],
  { current, unchanged, flags }: { current: Current; unchanged: number; flags: Applying },
) => ({
  file: flags.file,
  dry_run: flags.dryRun,
  unchanged,
  steps: taken.map(({ step, status, error }) => {
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
  const text = (value: unknown) => JSON.stringify(value) ?? 'nothing';
  const lines = step.changes.map(({ path, from, to }) => `    ${path}: ${text(from)} → ${text(to)}`);
  return [cli.style('yellow', `~ ${nameOf(step)}`), ...lines].join('\n');
}
