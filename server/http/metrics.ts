import { Gauge, Histogram, Registry } from 'prom-client';

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export interface Metrics {
  /** `route` is the path template, never the path, to keep the number of label values small. */
  observe(request: { method: string; route: string; status: number; seconds: number }): void;
  /** The text format of Prometheus. */
  text(): Promise<string>;
}

/**
 * The metrics of one app, in its own registry, so that several apps in one process do not mix.
 * @param totals of all workers, which have no endpoint of their own
 */
export function createMetrics(totals: { attemptsFenced(): Promise<number> }): Metrics {
  const registers = [new Registry()];
  const requests = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time until the response headers. The count is the number of requests.',
    labelNames: ['method', 'route', 'status'],
    buckets: BUCKETS,
    registers,
  });
  new Gauge({
    name: 'nodejs_eventloop_lag_seconds',
    help: 'Current delay of the event loop.',
    registers,
    async collect() {
      const start = performance.now();
      await new Promise((resolve) => setImmediate(resolve));
      this.set((performance.now() - start) / 1000);
    },
  });
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of this process.',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Gauge({
    name: 'stream_attempts_fenced_total',
    help: 'Attempts at streams that ended because a newer one had claimed the stream.',
    registers,
    async collect() {
      // The other metrics are wanted most when the database does not answer.
      const total = await totals.attemptsFenced().catch(() => null);
      if (total !== null) this.set(total);
    },
  });
  return {
    observe: ({ method, route, status, seconds }) => requests.observe({ method, route, status }, seconds),
    text: () => registers[0]!.metrics(),
  };
}
