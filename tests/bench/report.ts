export const median = (values: number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
};

/** Seconds of each contestant by round. The rounds alternate, so that a busy moment of the machine affects all. */
export type Times = Record<string, number[]>;

/** Prints the median rows/s of every contestant and the requested ratios with their goals. */
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
  for (const [ours, peer, goal] of goals) {
    const ratio = median(times[peer] ?? []) / median(times[ours] ?? []);
    console.log(
      `  ${ratio >= goal ? 'reached' : 'MISSED '} ${ratio.toFixed(2)} of "${peer}" by "${ours}", goal ${goal}`,
    );
  }
}

/** One line of a bench that has a goal. */
export const verdict = (reached: boolean, text: string): void =>
  console.log(`${reached ? 'reached' : 'MISSED '} ${text}`);
