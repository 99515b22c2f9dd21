import type { Config } from '../config.ts';
import { NO_TRACING, type Tracing } from './span.ts';

/** The libraries are loaded only where OTEL_EXPORTER_OTLP_ENDPOINT is set. */
export async function openTracing(config: Config, role: string): Promise<Tracing> {
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT === null) return NO_TRACING;
  const { openOtlp } = await import('./otlp.ts');
  return openOtlp({
    endpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT,
    headers: headersIn(config.OTEL_EXPORTER_OTLP_HEADERS),
    service_name: config.OTEL_SERVICE_NAME,
    role,
    propagates: config.TRACE_SOURCE_REQUESTS,
  });
}

/** `name=value` separated by commas, values in percent encoding. */
const headersIn = (text: string | null): Record<string, string> =>
  Object.fromEntries(
    (text ?? '').split(',').flatMap((pair) => {
      const at = pair.indexOf('=');
      return at > 0 ? [[pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())]] : [];
    }),
  );
