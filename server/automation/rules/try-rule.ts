import { join } from 'node:path';
import { LimitPassed, ProcessDied } from '../../platform/limited-process/limited-process.ts';
import { PoolBusy, ProcessPool } from '../../platform/limited-process/process-pool.ts';
import type { RuleTrial, RuleTrialJob } from './rule-trial.ts';

const LIMITS = { ms: 10_000, cpu_ms: 2_000, memory_mb: 512 };

const pool = new ProcessPool<RuleTrialJob, RuleTrial>(join(import.meta.dir, 'rule-process.ts'), {
  size: 2,
  size_per_owner: 1,
});

/**
 * Compiles a rule and evaluates it on events in a child process with limits: the events are as large as users send them.
 * A rule that passes a limit, or finds no process, is rejected with `limit_exceeded`.
 */
export async function tryRule(account_id: string, job: RuleTrialJob): Promise<RuleTrial> {
  try {
    for await (const trial of pool.run(job, { owner: account_id, limits: LIMITS })) return trial;
  } catch (error) {
    const message = messageOf(error);
    if (message === null) throw error;
    const failure = { code: 'limit_exceeded' as const, message, position: null };
    return { rejected: { error: failure, variables: [], functions: [], unknown_variables: [], result_type: null } };
  }
  throw new Error('the trial of a rule returned nothing');
}

function messageOf(error: unknown): string | null {
  if (error instanceof PoolBusy) return 'Too many rules are being tested. Try again in a moment';
  if (error instanceof ProcessDied) return 'The process that tested the rule ended unexpectedly. Try again';
  if (!(error instanceof LimitPassed)) return null;
  const limit = error.limit === 'memory' ? `${LIMITS.memory_mb} MB of memory` : `${LIMITS.cpu_ms / 1000} s`;
  return `The test of the rule took more than ${limit}. Use a shorter rule, or fewer or smaller events`;
}
