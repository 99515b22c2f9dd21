/**
 * Settings of the runtime's allocator, which reads them from the environment when a process starts. By default it looks
 * for free memory within used pages up to ten times a second, whenever the event loop pauses. That was a third of what an
 * idle process did.
 */
export const RUNTIME_SETTINGS = { MIMALLOC_PURGE_HOLES_MIN_INTERVAL: '10000' };

/** Starts the process over with these settings, unless it has them. To be called before anything else is loaded. */
export function tuneRuntime(): void {
  if (Object.keys(RUNTIME_SETTINGS).every((name) => process.env[name] !== undefined)) return;
  const env = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== undefined));
  const command = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  process.execve?.(process.execPath, command, { ...RUNTIME_SETTINGS, ...env });
}
