import pino, { type Logger } from 'pino';

const SECRET_NAMES = [
  'authorization',
  'Authorization',
  'cookie',
  'password',
  'secret',
  'secrets',
  'api_key',
  'token',
  'SECRET_KEY',
  'BOOTSTRAP_API_KEY',
  'DATABASE_URL',
  'METRICS_TOKEN',
];

/**
 * The log of the process: JSON lines on standard error. Standard output is for messages to the operator. Redaction by
 * name is only a second line of defense: secrets must not be passed to the log in the first place.
 */
export function openLog(level: string, bindings: Record<string, unknown> = {}): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid, ...bindings },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: SECRET_NAMES.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[redacted]' },
    },
    pino.destination({ dest: 2, sync: true }),
  );
}
