import type { CheckResult } from '../../../contract/connector.ts';
import { ConnectorError } from '../../../contract/errors.ts';
import { fixOf } from '../../../contract/fixes.ts';

/** Title, the message when it passes (unless `run` returns another one), the check itself. */
export type CheckStep = [title: string, message: string, run: () => Promise<unknown>];

/**
 * Runs the steps in order up to the first failure; the steps after it are skipped.
 * @throws ConnectorError if the first step fails: its class then says what is wrong with the whole connector
 */
export async function checkInOrder(steps: CheckStep[]): Promise<CheckResult['checks']> {
  const checks: CheckResult['checks'] = [];
  let failed = false;
  for (const [title, message, run] of steps) {
    if (failed) {
      checks.push({ title, status: 'skipped', message: null });
      continue;
    }
    try {
      const result = await run();
      checks.push({ title, status: 'passed', message: typeof result === 'string' ? result : message });
    } catch (error) {
      if (checks.length === 0 || !(error instanceof ConnectorError)) throw error;
      failed = true;
      checks.push({ title, status: 'failed', message: error.message, ...fixOf(error) });
    }
  }
  return checks;
}
