/**
 * Environment of the compiler and the linter: one thread, and a garbage collector that waits for more garbage. Both then
 * take half of the processor time (measured: 27 to 11 s, and 38 to 21 s), which the tests beside them need.
 */
export const FRUGAL = { GOMAXPROCS: '1', GOGC: '400' };

/** Command that checks types in one thread: four checkers repeat each other's work. */
export const TSC = [process.execPath, 'x', '--no-install', 'tsc', '--noEmit', '--singleThreaded'];
