import { CommandError, UsageError } from '../exit.ts';
import { readObject, type TextFile } from '../read-document.ts';
import { saveFile } from '../save-file.ts';
import type { PlanOptions, Step } from './plan.ts';

/** What a step does, without secrets. The revision is that of the item when it was planned. */
export interface PlannedStep {
  action: Step['action'];
  kind: string;
  name: string;
  revision: number | null;
  changes: unknown[];
}

/** A reviewed plan: the files as they were, and the steps that follow from them. */
export interface SavedPlan extends PlanOptions {
  version: 1;
  /** The plan belongs to this service. */
  service: string;
  created_at: string;
  /** The file or folder that was planned. */
  file: string;
  files: TextFile[];
  steps: PlannedStep[];
}

export const plannedStep = (step: Step): PlannedStep => {
  const { kind, name } = step.action === 'delete' ? step : step.wanted;
  const isUpdate = step.action === 'update';
  return {
    action: step.action,
    kind,
    name,
    revision: (isUpdate ? step.revision : null) ?? null,
    changes: isUpdate ? step.changes : [],
  };
};

/** Readable by the user alone: a file may hold a secret in place of a variable. */
export function savePlan(path: string, plan: SavedPlan): void {
  saveFile(path, `${JSON.stringify(plan, null, 2)}\n`, 0o600);
}

/** @throws UsageError unless the file is a plan for this service. */
export async function readPlan(path: string, service: string): Promise<SavedPlan> {
  const plan = (await readObject(path)) as Partial<SavedPlan>;
  if (plan.version !== 1 || !Array.isArray(plan.files) || !Array.isArray(plan.steps))
    throw new UsageError(`${path} is not a plan. Create one with \`apply --dry-run --save-plan ${path}\``);
  if (plan.service !== service)
    throw new UsageError(`${path} is a plan for ${plan.service}, but this command uses ${service}`);
  const file = plan.file ?? plan.files.map((one) => one.path).join(', ');
  return { ...plan, file } as SavedPlan;
}

/** @throws CommandError if the steps are not those that were reviewed. */
export function requireSameSteps(saved: SavedPlan, steps: Step[]): void {
  // Compared as JSON, which the saved steps have been through.
  const now = steps.map((step) => JSON.stringify(plannedStep(step)));
  const before = saved.steps.map((step) => JSON.stringify(step));
  if (now.join('\n') === before.join('\n')) return;
  throw new CommandError(
    'failed',
    `The account or the environment has changed since the plan was saved at ${saved.created_at}. Create and review a new plan`,
  );
}
