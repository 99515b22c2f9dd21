import { setDefaultTimeout } from 'bun:test';

/**
 * Ends tests and hooks that hang. A test that has to be quick says so by an `expect`: a machine may be busy.
 * For the file that calls it: Bun goes back to its five seconds with the next one, unless each has a process of its own.
 */
export const limitHangs = (): void => setDefaultTimeout(180_000);
