import { readdirSync, readFileSync } from 'node:fs';

const SAMPLE_MS = 200;

/** Samples the memory of a process and all below it until it is stopped. */
export function watchMemory(root: number, except: RegExp | null = null): { stop(): number } {
  let peak = 0;
  const sample = () => {
    peak = Math.max(peak, treeKb(root, except));
  };
  const timer = setInterval(sample, SAMPLE_MS);
  return {
    stop() {
      clearInterval(timer);
      sample();
      return Math.round(peak / 1024);
    },
  };
}

/** Proportional memory (PSS), so that what forked processes share counts once. */
function treeKb(root: number, except: RegExp | null): number {
  const parents = readdirSync('/proc')
    .map(Number)
    .filter(Number.isInteger)
    .map((pid) => [pid, Number(read(pid, 'stat').split(') ')[1]?.split(' ')[1] ?? -1)] as const);
  const below = (pid: number): number[] => [
    pid,
    ...parents.flatMap(([child, parent]) => (parent === pid ? below(child) : [])),
  ];
  const counted = below(root).filter((pid) => !except?.test(read(pid, 'cmdline')));
  return counted.reduce((sum, pid) => sum + Number(/^Pss:\s+(\d+)/m.exec(read(pid, 'smaps_rollup'))?.[1] ?? 0), 0);
}

function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    // It has ended meanwhile.
    return '';
  }
}
