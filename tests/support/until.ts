/** Waits until `holds` is true: looks every 20 ms, and fails after `timeout_ms` (60 s) naming the condition. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  options: { timeout_ms?: number; what?: string } = {},
): Promise<void> {
  const deadline = performance.now() + (options.timeout_ms ?? 60_000);
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not reached in time: ${options.what ?? holds.toString()}`);
    await Bun.sleep(20);
  }
}
