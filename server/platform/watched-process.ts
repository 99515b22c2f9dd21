import { periodic } from './periodic.ts';
import { RUNTIME_SETTINGS } from './tune-runtime.ts';

const HEARTBEAT_MS = 1000;
/** A process may take this long until its first heartbeat: it loads its code on a machine that may be busy. */
const START_MS = 60_000;
/** Default for how long the event loop of a process may be blocked. */
export const SILENT_MS = 10_000;
const TICKS = 10;
const STOP_MS = 30_000;

/** How a process ended. `hung`: it gave no heartbeat and was killed. */
export interface ProcessEnd {
  exit_code: number | null;
  signal: string | null;
  hung: boolean;
}

/** A child process that is killed when its event loop gives no heartbeat. */
export interface WatchedProcess {
  pid: number;
  ended: Promise<ProcessEnd>;
  /** Stops the process gracefully, by force after 30 s. Resolves at its end. */
  stop(): Promise<ProcessEnd>;
}

/**
 * Starts a process that calls `sendHeartbeats` and ends with its standard input. Silence is counted in turns of this
 * process, not in time: after the whole machine was suspended, the child gets its chance to answer.
 */
export function spawnWatched(
  command: string[],
  options: { env: Record<string, string | undefined>; silent_ms?: number; onReady?(): void },
): WatchedProcess {
  const { env, silent_ms = SILENT_MS, onReady } = options;
  let silent = 0;
  let limit = (START_MS / silent_ms) * TICKS;
  let hung = false;
  const child = Bun.spawn(command, {
    // Without them the child starts over, and a process that does so has lost the channel of its heartbeats.
    env: { ...RUNTIME_SETTINGS, ...env },
    stdio: ['pipe', 'inherit', 'inherit'],
    // In a session of its own: Ctrl-C in the terminal reaches only this process, which stops the child.
    detached: true,
    ipc(message) {
      silent = 0;
      limit = TICKS;
      if (message === 'ready') onReady?.();
    },
  });
  const listen = async () => {
    silent += 1;
    if (silent <= limit || hung) return;
    hung = true;
    child.kill('SIGKILL');
  };
  const watching = periodic(listen, { every_ms: silent_ms / TICKS, jitter: 0, onError: () => {} });
  const ended = child.exited.then(async (): Promise<ProcessEnd> => {
    await watching.stop();
    return { exit_code: child.exitCode, signal: child.signalCode === null ? null : String(child.signalCode), hung };
  });
  const stop = async () => {
    child.kill('SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    const end = await ended;
    clearTimeout(killer);
    return end;
  };
  return { pid: child.pid, ended, stop };
}

/** In the child: sends heartbeats from now on. Without a parent that watches, nothing is sent. */
export function sendHeartbeats(): { ready(): void } {
  const send = (message: 'alive' | 'ready') => void process.send?.(message);
  const options = { every_ms: HEARTBEAT_MS, jitter: 0, immediately: true, onError: () => {} };
  periodic(async () => send('alive'), options);
  return { ready: () => send('ready') };
}

/** Such as "gave no heartbeat for 10 s". */
export const endText = ({ hung, signal, exit_code }: ProcessEnd, silent_ms = SILENT_MS): string =>
  hung ? `gave no heartbeat for ${silent_ms / 1000} s` : `ended with ${signal ?? `exit code ${exit_code}`}`;
