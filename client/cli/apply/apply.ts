import { requireConfirmation } from '../actions/session.ts';
import type { Cli } from '../context.ts';
import { describeFailure, Refused } from '../exit.ts';
import { readText } from '../read-document.ts';
import { type Current, readCurrent } from './current.ts';
import { readPipelines } from './document.ts';
import { takeStep } from './execute.ts';
import { makePlan, type Step } from './plan.ts';

export interface Applying {
  file: string;
  yes: boolean;
  dryRun: boolean;
  prune: boolean;
  rotateSecrets: boolean;
}

/** Makes what there is be as the file says: difference, question, changes. */
export async function apply(cli: Cli, flags: Applying): Promise<void> {
  const wanted = readPipelines(await readText(flags.file), flags.file);
  const api = await cli.api();
  const current = await readCurrent(api);
  const { steps, unchanged } = await makePlan(api, { wanted, current, options: flags });
  if (steps.length === 0) return cli.say(`No change: ${unchanged} things are as ${flags.file} says`);
  for (const step of steps) cli.say(describe(cli, step));
  const count = (action: Step['action']) => steps.filter((step) => step.action === action).length;
  cli.say(
    `${count('create')} to create, ${count('update')} to change, ${count('delete')} to delete, ${unchanged} unchanged`,
  );
  if (flags.dryRun) throw new Refused('failed', 'Nothing was done (--dry-run)');
  await requireConfirmation(cli, { yes: flags.yes, message: 'Do it?' });
  await takeAll(cli, { steps, current, take: (step) => takeStep(api, step, current) });
}

async function takeAll(
  cli: Cli,
  { steps, take }: { steps: Step[]; current: Current; take(step: Step): Promise<void> },
): Promise<void> {
  for (const [done, step] of steps.entries()) {
    try {
      await take(step);
    } catch (error) {
      const rest = steps.slice(done).map((one) => `  ${nameOf(one)}`);
      cli.note(`Done: ${done} of ${steps.length}. Not done:\n${rest.join('\n')}`);
      throw error instanceof Refused ? new Refused('failed', describeFailure(error)) : error;
    }
    cli.say(`${cli.style('green', 'done')}  ${nameOf(step)}`);
  }
}

const nameOf = (step: Step): string => {
  const { kind, name } = step.action === 'delete' ? step : step.wanted;
  return `${step.action} ${kind.slice(0, -1)} "${name}"`;
};

function describe(cli: Cli, step: Step): string {
  if (step.action === 'create') return cli.style('green', `+ ${nameOf(step)}`);
  if (step.action === 'delete') return cli.style('red', `- ${nameOf(step)}`);
  const text = (value: unknown) => JSON.stringify(value) ?? 'nothing';
  const lines = step.changes.map(({ path, from, to }) => `    ${path}: ${text(from)} → ${text(to)}`);
  return [cli.style('yellow', `~ ${nameOf(step)}`), ...lines].join('\n');
}
