type Answers<Steps extends readonly (() => Promise<unknown>)[]> = {
  [At in keyof Steps]: Awaited<ReturnType<Steps[At]>>;
};

/**
 * Sends statements of a transaction one after the other without waiting for answers in between: one round trip instead of
 * one for each. Each sees what those before it have locked and written. All steps but the last send one statement each.
 * @throws the error of the first step that fails
 */
export async function pipelined<const Steps extends readonly (() => Promise<unknown>)[]>(
  ...steps: Steps
): Promise<Answers<Steps>> {
  const answers: Promise<unknown>[] = [];
  for (const step of steps) {
    // A query of drizzle is sent by each `then`: the async function calls it once.
    const answer = (async () => step())();
    // Awaited below, after the errors of those before it.
    answer.catch(() => {});
    answers.push(answer);
    await handedOver();
  }
  const values: unknown[] = [];
  for (const answer of answers) values.push(await answer);
  return values as Answers<Steps>;
}

/**
 * Statements reach the driver in a few microtasks. A tick that one of them asks for comes after the last, and before the
 * driver writes to its socket, at the end of the turn: one write for all steps.
 */
const handedOver = () => new Promise<void>((resolve) => queueMicrotask(() => process.nextTick(resolve)));
