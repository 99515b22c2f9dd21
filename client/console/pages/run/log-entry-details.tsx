import { formatBytes, formatDateTime, formatDuration } from '../../components/format.ts';
import { labelOf } from '../../components/status.tsx';
import type { LogEntry } from './log-entries.ts';

/** The service's mark for redacted values, which URLs contain percent-encoded. */
const REDACTED = /(\[redacted\]|%5Bredacted%5D)/i;

/** Headers, bodies and timings of one request, with redacted values highlighted. */
export function LogEntryDetails({ entry }: { entry: LogEntry }) {
  const { request, response, timings, error } = entry;
  return (
    <div className="log-details">
      <p className="dimmed">
        {formatDateTime(entry.timestamp)} · {entry.stream_name} · Attempt {entry.attempt}, request {entry.sequence}
        {timings &&
          Object.entries(timings).map(([name, ms]) =>
            ms === null ? null : (
              <span key={name}>
                {' · '}
                {labelOf(name.replace(/_ms$/, ''))} {formatDuration(Math.round(ms))}
              </span>
            ),
          )}
      </p>
      {error && (
        <p className="stream-error">
          {error.message} <code>{error.code}</code>
        </p>
      )}
      <div className="columns">
        <MessageDetails title="Request" message={request} query={request.query} />
        {response && <MessageDetails title={`Response ${response.status}`} message={response} />}
      </div>
    </div>
  );
}

interface MessageProps {
  title: string;
  message: Pick<LogEntry['request'], 'headers' | 'body' | 'body_bytes' | 'body_truncated'>;
  query?: Record<string, unknown>;
}

function MessageDetails({ title, message, query = {} }: MessageProps) {
  const { headers, body, body_bytes, body_truncated } = message;
  const lines = [
    ...Object.entries(query).map(([name, value]) => `?${name}=${String(value)}`),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      {lines.length > 0 && <Code text={lines.join('\n')} label={`${title} headers`} />}
      {body !== null && <Code text={pretty(body)} label={`${title} body`} />}
      <p className="dimmed">
        {formatBytes(body_bytes)}
        {body_truncated && ', truncated'}
      </p>
    </section>
  );
}

const Code = ({ text, label }: { text: string; label: string }) => (
  // A region that scrolls must be reachable by keyboard.
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
  <pre className="code-block" tabIndex={0} role="region" aria-label={label}>
    {text.split(REDACTED).map((part, index) => (REDACTED.test(part) ? <mark key={index}>{part}</mark> : part))}
  </pre>
);

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
