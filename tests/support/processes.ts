import { readdirSync, readFileSync } from 'node:fs';

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

/** Processes that one has started, by a part of their command. */
export const childrenOf = (parent: number, command: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const runs = readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(command);
        return runs && readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]?.split(' ')[1] === String(parent);
      } catch {
        // It has ended meanwhile.
        return false;
      }
    })
    .map(Number);

const MS_PER_TICK = 10;

/** Processor milliseconds of the living processes that this one has started. */
export const childrenMs = (): number =>
  childrenOf(process.pid, '')
    .map(ticksOf)
    .reduce((sum, ticks) => sum + ticks * MS_PER_TICK, 0);

function ticksOf(pid: number): number {
  try {
    const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ').slice(11, 13);
    return Number(user) + Number(system);
  } catch {
    // It has ended meanwhile.
    return 0;
  }
}
