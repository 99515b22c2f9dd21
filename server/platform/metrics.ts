import { monitorEventLoopDelay } from 'node:perf_hooks';
import type * as prom from 'prom-client';

// Not from the index of the package: it loads the default metrics, too, and with them @opentelemetry/api, 2 MB.
const Counter = require('prom-client/lib/counter') as typeof prom.Counter;
const Gauge = require('prom-client/lib/gauge') as typeof prom.Gauge;
const Histogram = require('prom-client/lib/histogram') as typeof prom.Histogram;
const Registry = require('prom-client/lib/registry') as typeof prom.Registry;

/** A family whose values are measured when they are asked for. */
export interface MetricFamily {
  name: string;
  help: string;
  type: 'gauge' | 'counter';
  values: { labels?: Record<string, string>; value: number }[];
}

/** A run that has ended, as the counters see it. */
export interface EndedRunMetrics {
  outcome: string;
  /** Code of the error or of the skip; empty: none. */
  reason: string;
  trigger: string;
  seconds: number | null;
  rows_read: number;
  rows_loaded: number;
  rows_rejected: number;
  bytes_loaded: number;
}

/** The metrics of one process, in the form of Prometheus. */
export interface Metrics {
  /** `route` is the path template, never the path, to keep the number of label values small. */
  request(request: { method: string; route: string; status: number; seconds: number }): void;
  runEnded(run: EndedRunMetrics): void;
  scheduleDelay(seconds: number): void;
  deliveryAttempt(attempt: { kind: string; outcome: string }): void;
  /** Families that `measure` returns with each scrape. The last one of a name counts. */
  provide(name: string, measure: () => Promise<MetricFamily[]> | MetricFamily[]): void;
  text(): Promise<string>;
}

const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const DELAY_SECONDS = [0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600];
const RUN_SECONDS = [1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600];

/** Error codes of connectors are many, but not unlimited. A label must not grow with what servers answer. */
const MAX_REASONS = 200;

/** Opens the metrics of a process, in a registry of their own, so that several services in one process do not mix. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const known = { ...runFamilies(registry), ...serviceFamilies(registry) };
  processFamilies(registry);
  const measured = measuredFamilies(registry);
  const reasons = new Set<string>();
  const bounded = (reason: string) => {
    if (reasons.size < MAX_REASONS) reasons.add(reason);
    return reasons.has(reason) ? reason : 'other';
  };
  return {
    request: ({ method, route, status, seconds }) => known.requests.observe({ method, route, status }, seconds),
    runEnded: (run) => {
      const { outcome, trigger, seconds } = run;
      known.runs.inc({ outcome, reason: bounded(run.reason), trigger });
      if (seconds !== null) known.durations.observe({ outcome }, seconds);
      known.rows.inc({ direction: 'read' }, run.rows_read);
      known.rows.inc({ direction: 'loaded' }, run.rows_loaded);
      known.rows.inc({ direction: 'rejected' }, run.rows_rejected);
      known.bytes.inc(run.bytes_loaded);
    },
    scheduleDelay: (seconds) => known.delays.observe(seconds),
    deliveryAttempt: (labels) => known.deliveries.inc(labels),
    provide: measured.provide,
    text: async () => {
      await measured.measure();
      return registry.metrics();
    },
  };
}

/** What became of runs, counted by the worker that reports their end. */
function runFamilies(registry: prom.Registry) {
  const registers = [registry];
  return {
    runs: new Counter({
      name: 'datapipelines_runs_finished_total',
      help: 'Runs that ended or were skipped. The reason is the error code, or why the run was skipped.',
      labelNames: ['outcome', 'reason', 'trigger'],
      registers,
    }),
    durations: new Histogram({
      name: 'datapipelines_run_duration_seconds',
      help: 'Time between the start and the end of runs.',
      labelNames: ['outcome'],
      buckets: RUN_SECONDS,
      registers,
    }),
    rows: new Counter({
      name: 'datapipelines_rows_total',
      help: 'Rows of runs that ended.',
      labelNames: ['direction'],
      registers,
    }),
    bytes: new Counter({
      name: 'datapipelines_loaded_bytes_total',
      help: 'Bytes loaded by runs that ended.',
      registers,
    }),
  };
}

function serviceFamilies(registry: prom.Registry) {
  const registers = [registry];
  return {
    requests: new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time until the response headers. The count is the number of requests.',
      labelNames: ['method', 'route', 'status'],
      buckets: REQUEST_SECONDS,
      registers,
    }),
    delays: new Histogram({
      name: 'datapipelines_schedule_delay_seconds',
      help: 'Time between the planned start of a scheduled run and the moment at which it was queued or skipped.',
      buckets: DELAY_SECONDS,
      registers,
    }),
    deliveries: new Counter({
      name: 'datapipelines_deliveries_total',
      help: 'Attempts at actions of triggers.',
      labelNames: ['kind', 'outcome'],
      registers,
    }),
  };
}

/** How long the histogram of the event loop collects before a scrape empties it. */
const WINDOW_MS = 10_000;

function processFamilies(registry: prom.Registry): void {
  const registers = [registry];
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
  let delays: ReturnType<typeof monitorEventLoopDelay> | null = null;
  let since = 0;
  new Gauge({
    name: 'datapipelines_event_loop_delay_p99_seconds',
    help: '99th percentile of the delay of the event loop since an earlier scrape.',
    registers,
    collect() {
      if (delays === null) {
        delays = monitorEventLoopDelay({ resolution: 20 });
        delays.enable();
        since = performance.now();
      }
      this.set(delays.count === 0 ? 0 : delays.percentile(99) / 1e9);
      if (performance.now() - since < WINDOW_MS) return;
      delays.reset();
      since = performance.now();
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
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Processor time of this process.',
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
}

/** Families that are measured with each scrape. What cannot be measured is left out, never shown as it was before. */
function measuredFamilies(registry: prom.Registry) {
  const sources = new Map<string, () => Promise<MetricFamily[]> | MetricFamily[]>();
  let shown = new Set<string>();
  let measuring: Promise<void> | null = null;
  const measureAll = async () => {
    const all = await Promise.all([...sources.values()].map(async (measure) => measure()));
    for (const name of shown) registry.removeSingleMetric(name);
    const families = all.flat();
    shown = new Set(families.map(({ name }) => name));
    for (const family of families) show(registry, family);
  };
  return {
    provide: (name: string, measure: () => Promise<MetricFamily[]> | MetricFamily[]) => void sources.set(name, measure),
    // Scrapes at the same time share one measurement, since callers need no key.
    measure: () => (measuring ??= measureAll().finally(() => (measuring = null))),
  };
}

function show(registry: prom.Registry, { name, help, type, values }: MetricFamily): void {
  const labelNames = [...new Set(values.flatMap(({ labels = {} }) => Object.keys(labels)))];
  const settings = { name, help, labelNames, registers: [registry] };
  const metric = type === 'counter' ? new Counter(settings) : new Gauge(settings);
  for (const { labels = {}, value } of values) metric.inc(labels, value);
}
