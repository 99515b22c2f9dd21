import type { StoredLogLine } from '../../../db/schema/index.ts';
import { inRows, inTime, inWords } from '../../pipeline/log-words.ts';
import { backoffSeconds } from '../../pipeline/run-states.ts';
import type { Progress } from '../claim-stream.ts';
import type { Outcome } from '../outcome.ts';

type Line = Pick<StoredLogLine, 'level' | 'code' | 'message'>;

/** The last line of an attempt. @param attempts those without progress, this one included */
export function lineOf(outcome: Outcome, { progress, attempts }: { progress: Progress; attempts: number }): Line {
  const counts = `${inRows(progress.rows_read)} read, ${inWords(progress.rows_loaded)} loaded`;
  switch (outcome.kind) {
    case 'succeeded':
      return { level: 'info', code: 'succeeded', message: `Stream succeeded: ${counts}` };
    case 'ready':
      return {
        level: 'info',
        code: 'ready',
        message: `${counts}. They become visible with those of the other streams`,
      };
    case 'stopped':
      return { level: 'warning', code: 'stopped', message: `Stream stopped: ${counts}. Committed rows stay` };
    case 'released':
      return { level: 'info', code: 'released', message: `Attempt released: ${counts}. Another worker continues` };
    case 'failed':
      return { level: 'error', code: outcome.error.code, message: `Stream failed: ${outcome.error.message}` };
    case 'retry':
      return { level: 'warning', code: outcome.error.code, message: retryText(outcome, attempts) };
  }
}

function retryText({ error, wait_until, backoff_base_seconds }: Extract<Outcome, { kind: 'retry' }>, attempts: number) {
  if (wait_until) return `Waits until ${wait_until.toISOString()}, as requested: ${error.message}`;
  const pause = inTime(1000 * backoffSeconds(attempts, backoff_base_seconds));
  return `Attempt failed: ${error.message}. The next one begins in ${pause}`;
}
