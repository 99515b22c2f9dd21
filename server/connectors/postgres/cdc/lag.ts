import type { ConnectorContext, LogLag } from '../../contract/connector.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';

const MB = 1_000_000;

export const lagOf = ({ config }: ConnectorContext<PostgresSourceConfig>, bytes: number): LogLag => ({
  bytes,
  is_high: bytes > config.slot_lag_warning_mb * MB,
  is_over: config.slot_lag_policy === 'pause_and_drop_slot' && bytes > config.slot_lag_limit_mb * MB,
});
