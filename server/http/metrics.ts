import { Gauge, Histogram, Registry } from 'prom-client';

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export interface Metrics {
  /** `route` is the template of the path, never the path: its values would be without number. */
  observe(request: { method: string; route: string; status: number; seconds: number }): void;
  /** The text format of Prometheus. */
  text(): Promise<string>;
}

/** Measures of one app, in a registry of its own, so that several in one process do not mix. */
export function createMetrics(): Metrics {
  const registers = [new Registry()];
  const requests = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time to the head of the answer; its count is the number of requests.',
    labelNames: ['method', 'route', 'status'],
    buckets: BUCKETS,
    registers,
  });
  new Gauge({
    name: 'nodejs_eventloop_lag_seconds',
    help: 'How late the event loop is at this moment.',
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
  return {
    observe: ({ method, route, status, seconds }) => requests.observe({ method, route, status }, seconds),
    text: () => registers[0]!.metrics(),
  };
}
