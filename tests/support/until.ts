const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;

/**
 * Waits until `holds` is true, and fails after `timeout_ms` (60 s) naming the condition. The pauses between looks grow
 * with the time waited: most conditions query a database, and a look every 20 ms took a third of the processor time of
 * the tests.
 */
export async function until(
  holds: () => boolean | Promise<boolean>,
  options: { timeout_ms?: number; what?: string } = {},
): Promise<void> {
  const started = performance.now();
  const deadline = started + (options.timeout_ms ?? 60_000);
  while (!(await holds())) {
    const now = performance.now();
    if (now > deadline) throw new Error(`not reached in time: ${options.what ?? holds.toString()}`);
    await Bun.sleep(Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, (now - started) / 4)));
  }
}
