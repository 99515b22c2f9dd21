/**
 * `bun tests/bench/foreign-work.ts`: how long `/healthz` takes to answer while the service tests connectors whose
 * parameters, data or answers take seconds of work.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { onDuckDb } from '../connectors/duckdb-places.ts';
import { FOREIGN_INPUTS, foreign_host, stopForeignServer } from '../support/foreign-inputs.ts';
import { startService } from './service.ts';

const GOAL_MS = 100;
const EVERY_MS = 10;
const service = await startService({ EGRESS_ALLOW: foreign_host });
try {
  const folder = join(service.data_dir, 'files');
  mkdirSync(folder, { recursive: true });
  await onDuckDb(join(folder, 'one.duckdb'), 'create table t as select 1 as n');
  for (const [what, input, code] of FOREIGN_INPUTS) {
    const state = { isOver: false };
    const body = { name: what, connector_type: 'source', ...input };
    const started = performance.now();
    const created = service
      .call<{ status_reason: string | null }>('POST', '/account_connectors', body)
      .finally(() => Object.assign(state, { isOver: true }));
    const answers: number[] = [];
    while (!state.isOver) {
      const asked = performance.now();
      await fetch(`${service.url}/healthz`).then((answer) => answer.text());
      answers.push(performance.now() - asked);
      await Bun.sleep(EVERY_MS);
    }
    const { status_reason } = await created;
    if (status_reason !== code) throw new Error(`${what}: ${status_reason}`);
    const slowest = Math.max(...answers);
    const shown = `${slowest.toFixed(0)} ms at most, ${answers.length} requests in ${((performance.now() - started) / 1000).toFixed(1)} s`;
    console.log(`${slowest <= GOAL_MS ? 'reached' : 'MISSED '} ${what}: ${shown}, goal ${GOAL_MS} ms`);
  }
} finally {
  await service.stop();
  await stopForeignServer();
}
