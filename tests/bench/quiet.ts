import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Cores that may be busy with other work. */
const QUIET_CORES = 0.5;
const SAMPLE_MS = 1_000;
/** `BENCH_PATIENCE_SECONDS=0`: for figures in processor time. */
const PATIENCE_MS = Number(process.env.BENCH_PATIENCE_SECONDS ?? 300) * 1000;

/** The numbers of rounds, each as soon as the machine is quiet. */
export async function* quietRounds(count: number): AsyncGenerator<number> {
  for (let round = 0; round < count; round += 1) {
    await untilQuiet();
    yield round;
  }
}

/** Waits while other work keeps the machine busy. When it has lost patience it returns anyway, and prints how busy it is. */
export async function untilQuiet(): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (let waits = false; ; waits = true) {
    const busy = await busyCores();
    if (busy <= QUIET_CORES) return;
    if (performance.now() > deadline) return console.log(`  not quiet: ${busy.toFixed(1)} cores are busy`);
    if (!waits) console.log(`  waiting: ${busy.toFixed(1)} cores are busy`);
  }
}

/** During a second, with time taken by other guests of the host. A load average would still count the last round. */
export async function busyCores(): Promise<number> {
  const before = ticks();
  await Bun.sleep(SAMPLE_MS);
  const after = ticks();
  return ((after.busy - before.busy) / (after.all - before.all)) * availableParallelism();
}

/** Of all processors since the start of the machine. */
function ticks(): { busy: number; all: number } {
  const [first = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  // user, nice, system, idle, iowait, irq, softirq, steal
  const spent = first.trim().split(/\s+/).slice(1, 9).map(Number);
  const all = spent.reduce((sum, one) => sum + one, 0);
  const [, , , idle = 0, waiting = 0] = spent;
  return { all, busy: all - idle - waiting };
}
