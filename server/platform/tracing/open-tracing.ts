import type { Config } from '../config.ts';
import { NO_TRACING, type Tracing } from './span.ts';

/**
 * The libraries are loaded only where OTEL_EXPORTER_OTLP_ENDPOINT is set. `sendsSecret` is called with the host before the
 * secrets in OTEL_EXPORTER_OTLP_HEADERS are sent.
 */
export async function openTracing(
  config: Config,
  role: string,
  sendsSecret: (host: string) => Promise<void>,
): Promise<Tracing> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers } = config;
  if (endpoint === null) return NO_TRACING;
  const { openOtlp } = await import('./otlp.ts');
  return openOtlp({
    endpoint,
    headers: async () => {
      if (headers !== null) await sendsSecret(new URL(endpoint).host);
      return headersIn(headers);
    },
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
