import { readFileSync } from 'node:fs';

/** Also false for a process that has ended and waits for its parent to reap it. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  return !isZombie(pid);
}

function isZombie(pid: number): boolean {
  try {
    return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/\(.*\)/s, ''));
  } catch {
    // Without /proc (macOS) the first process reaps at once.
    return false;
  }
}
