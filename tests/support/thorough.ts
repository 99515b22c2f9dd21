/** The nightly run tries every case; the run before a change goes in tries some of them. */
export const isThorough = process.env.THOROUGH === '1';

/** All of them in the nightly run; else `count` at even distances, among them the first and the last. */
export function spread<T>(all: readonly T[], count: number): T[] {
  if (isThorough || all.length <= count) return [...all];
  return Array.from({ length: count }, (_, at) => all[Math.round((at * (all.length - 1)) / (count - 1))] as T);
}
