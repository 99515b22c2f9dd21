import type { Config } from '../../server/platform/config.ts';
import { deliverActionJob } from '../../server/automation/delivery/deliver.ts';
import { deliverAction } from '../../server/queue/jobs.ts';
import { testApi } from './api.ts';
import { testDeps } from './database.ts';
import { firingsOf } from './firings.ts';
import { makerOf } from './resources.ts';
import { until } from './until.ts';

type Facts = { connection_id?: string; connection_run_id?: string };

/** A service that only sends deliveries: it claims no runs, and evaluates events only on a test's request. */
export async function deliveringService(config: Partial<Config>) {
  const settings = { DELIVERY_BACKOFF_SECONDS: 0, PUBLIC_URL: 'https://pipelines.example.test', ...config };
  const service = await testDeps({ config: settings });
  const { deps } = service;
  const { call } = testApi(service);
  const firings = firingsOf(service, call);
  const { fire, event, deliveriesOf } = firings;
  await deps.queue.work(deliverAction, 3, ({ delivery_id }, signal) => deliverActionJob(deps, delivery_id, signal));
  return {
    ...firings,
    service,
    deps,
    call,
    make: makerOf(call),
    /** One firing of a failure. */
    failed: async (trigger: Parameters<typeof fire>[0]['trigger'], facts: Facts = {}) => {
      const group = { connection_id: facts.connection_id ?? null };
      return fire({ trigger, event: await event('connection_failed', facts), group, kind: 'fired' });
    },
    /** All deliveries of a trigger, once `count` have finished. */
    settled: async (trigger: { id: string }, count = 1) => {
      const waiting = new Set(['pending', 'retrying']);
      const ended = async () => (await deliveriesOf(trigger)).filter(({ status }) => !waiting.has(status));
      await until(async () => (await ended()).length >= count);
      return deliveriesOf(trigger);
    },
  };
}
