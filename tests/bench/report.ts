import { appendFileSync } from 'node:fs';

export const median = (values: number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
};

/** Seconds of each contestant by round. The rounds alternate, so that a busy moment of the machine affects all. */
export type Times = Record<string, number[]>;

/** A line that `tests/bench/all.ts` reads. */
export interface Result {
  title: string;
  /** By name, in the unit of the bench; for a contestant the median of its seconds. */
  figures: Record<string, number>;
  rows?: number;
  seconds?: Times;
  ratios?: { ours: string; peer: string; ratio: number; goal: number }[];
  /** Whether a goal that the title names is reached. */
  reached?: boolean;
}

/** For `tests/bench/all.ts`, which names a file to append to. */
export function record(result: Result): void {
  const { BENCH_RESULTS } = process.env;
  if (BENCH_RESULTS) appendFileSync(BENCH_RESULTS, `${JSON.stringify(result)}\n`);
}

/** Prints the median rows/s of every contestant and the requested ratios with their goals, and records them. */
export function report(
  title: string,
  rows: number,
  times: Times,
  goals: [ours: string, peer: string, goal: number][],
): void {
  console.log(`\n${title}, ${rows.toLocaleString('en')} rows, medians`);
  for (const [name, seconds] of Object.entries(times)) {
    const perSecond = Math.round(rows / median(seconds)).toLocaleString('en');
    const all = seconds.map((one) => one.toFixed(2)).join(' ');
    console.log(`  ${name.padEnd(44)} ${median(seconds).toFixed(2)} s  ${perSecond.padStart(9)} rows/s   (${all})`);
  }
  const ratios = goals.map(([ours, peer, goal]) => {
    return { ours, peer, goal, ratio: median(times[peer] ?? []) / median(times[ours] ?? []) };
  });
  for (const { ours, peer, goal, ratio } of ratios) {
    console.log(
      `  ${ratio >= goal ? 'reached' : 'MISSED '} ${ratio.toFixed(2)} of "${peer}" by "${ours}", goal ${goal}`,
    );
  }
  const medians = Object.entries(times).map(([name, seconds]) => [name, median(seconds)] as const);
  record({ title, rows, seconds: times, figures: Object.fromEntries(medians), ratios });
}

/** Prints and records one line of a bench that has a goal. */
export function verdict(reached: boolean, text: string): void {
  console.log(`${reached ? 'reached' : 'MISSED '} ${text}`);
  record({ title: text, figures: {}, reached });
}
