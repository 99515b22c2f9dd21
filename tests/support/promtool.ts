const path = Bun.which('promtool');

/** Why the checks of Prometheus cannot run, or null. */
export const missingPromtool = path ? null : 'the Debian package prometheus is not installed';
if (missingPromtool) {
  if (process.env.CI === 'true') throw new Error(`Tests need promtool, but ${missingPromtool}`);
  console.warn(`Tests with promtool are SKIPPED: ${missingPromtool}`);
}

/** Runs Prometheus's own checks. Returns what they write. @throws Error with it if they find a fault */
export async function promtool(args: string[], options: { cwd?: string; stdin?: string } = {}): Promise<string> {
  const child = Bun.spawn([path!, ...args], {
    cwd: options.cwd,
    stdin: new Blob([options.stdin ?? '']),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (child.exitCode !== 0) throw new Error(`promtool ${args.join(' ')}: ${out}${err}`);
  return out + err;
}
