import {
  ROOT_CONTEXT,
  type Span as OtelSpan,
  SpanKind as Kind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Span, SpanKind, SpanOptions, Tracing } from './span.ts';

export interface TracingSettings {
  /** The collector, without `/v1/traces`. */
  endpoint: string;
  /** Called before each export. Spans of an export without headers are lost. */
  headers(): Promise<Record<string, string>>;
  service_name: string;
  role: string;
  propagates: boolean;
}

const KINDS: Record<SpanKind, Kind> = {
  internal: Kind.INTERNAL,
  server: Kind.SERVER,
  client: Kind.CLIENT,
  consumer: Kind.CONSUMER,
};
/** The exporter tries again while a collector is away. The process must not wait for that. */
const STOP_MS = 2_000;
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Sends spans to a collector by OTLP over HTTP. A collector that is away costs spans, never work. */
export function openOtlp(settings: TracingSettings): Tracing {
  const { endpoint, headers, service_name, role } = settings;
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces`, headers });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': service_name, 'service.instance.role': role }),
    spanProcessors: [new BatchSpanProcessor(exporter, { scheduledDelayMillis: 1000 })],
  });
  const tracer = provider.getTracer('data-pipelines');
  return {
    begin: (name, { traceparent, ...options }) =>
      start(tracer, name, { ...options, parent: remoteParent(traceparent), settings }),
    stop: () => Promise.race([provider.shutdown().catch(() => {}), Bun.sleep(STOP_MS)]),
  };
}

function remoteParent(traceparent: string | null) {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (!traceId || !spanId || !flags) return ROOT_CONTEXT;
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, context);
}

function start(
  tracer: Tracer,
  name: string,
  { kind = 'internal', attributes, parent, settings }: SpanOptions & Parented,
): Span {
  const span: OtelSpan = tracer.startSpan(name, { kind: KINDS[kind], attributes }, parent);
  const { traceId, spanId, traceFlags } = span.spanContext();
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    propagates: settings.propagates,
    child: (child, options = {}) =>
      start(tracer, child, { ...options, parent: trace.setSpan(ROOT_CONTEXT, span), settings }),
    set: (more) => void span.setAttributes(more),
    // The class and code only: messages can name hosts and values of users.
    fail: (error) => {
      const code = (error as { code?: unknown }).code;
      const type = typeof code === 'string' ? code : (error as Error).name;
      span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', type);
    },
    end: () => span.end(),
  };
}

interface Parented {
  parent: ReturnType<typeof remoteParent>;
  settings: TracingSettings;
}
