type Step = () => Promise<unknown>;

const steps: Step[] = [];

/** What the last test file of this process ends: servers and programs that its files share. */
export const atEnd = (step: Step): void => void steps.push(step);

export async function runEndSteps(): Promise<void> {
  await Promise.all(steps.splice(0).map((step) => step()));
}
