type Step = () => Promise<unknown>;

const steps: Step[] = [];

/** Ends servers and programs that tests share. Under `--parallel`, Bun runs these steps after each file. */
export const atEnd = (step: Step): void => void steps.push(step);

export async function runEndSteps(): Promise<void> {
  await Promise.all(steps.splice(0).map((step) => step()));
}
