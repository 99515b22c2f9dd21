import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

/** Processor seconds of a process and of its children, those that have ended included. */
export function processorSeconds(pid: number): number {
  return childrenOf(pid).reduce((sum, child) => sum + processorSeconds(child), secondsOf(pid));
}

/** Of all of its threads. pgrep would read all processes of the machine for each one. */
export function childrenOf(pid: number): number[] {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    const listed = tasks.map((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8'));
    return listed.flatMap((one) => one.split(' ').filter(Boolean).map(Number));
  } catch {
    return [];
  }
}

/** Of this process, and of those of its children that have ended. */
export function secondsOf(pid: number): number {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    // It has ended meanwhile, and counts as its parent's.
    return 0;
  }
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
}
