import type { ConnectorContext, LogLag, StreamState } from '../../contract/connector.ts';
import { withSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { logFileOf } from './log-members.ts';
import type { LogFile } from './log-server.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

const MB = 1_000_000;

/** How much of the log follows the lowest of these states. Unknown counts as nothing. */
export async function measureLag(ctx: Context, states: readonly StreamState[]): Promise<LogLag> {
  const files = states.flatMap((state) => logFileOf(state) ?? []);
  const lowest = files.reduce<LogFile | null>((low, one) => (low === null || isBefore(one, low) ? one : low), null);
  return lagOf(ctx, lowest === null ? 0 : await bytesAfter(ctx, lowest));
}

export const lagOf = ({ config }: Context, bytes: number): LogLag => ({
  bytes,
  is_high: bytes > config.binlog_lag_warning_mb * MB,
});

const isBefore = (one: LogFile, other: LogFile) =>
  one.name === other.name ? one.position < other.position : one.name < other.name;

async function bytesAfter(ctx: Context, { name, position }: LogFile): Promise<number> {
  const { rows } = await withSession(ctx, { phase: 'run', database: null }, (session) =>
    session.query('show binary logs'),
  );
  const at = rows.findIndex(([file]) => file === name);
  if (at < 0) return 0;
  const total = rows.slice(at).reduce((sum, [, size]) => sum + Number(size), 0);
  return Math.max(0, total - position);
}
