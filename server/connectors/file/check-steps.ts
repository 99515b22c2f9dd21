import type { CheckResult } from '../contract/connector.ts';
import { ConnectorError } from '../contract/errors.ts';

/** Title, what to say when it passes (or where `run` gives a text, that), what to do. */
export type CheckStep = [title: string, message: string, run: () => Promise<unknown>];

/**
 * One after the other, up to the first that fails. @throws ConnectorError when already the first one fails: then nothing
 * is right, and the class says what
 */
export async function checkedInOrder(steps: CheckStep[]): Promise<CheckResult['checks']> {
  const checks: CheckResult['checks'] = [];
  let failed = false;
  for (const [title, message, run] of steps) {
    if (failed) {
      checks.push({ title, status: 'skipped', message: null });
      continue;
    }
    try {
      const said = await run();
      checks.push({ title, status: 'passed', message: typeof said === 'string' ? said : message });
    } catch (error) {
      if (checks.length === 0 || !(error instanceof ConnectorError)) throw error;
      failed = true;
      checks.push({ title, status: 'failed', message: error.message });
    }
  }
  return checks;
}
