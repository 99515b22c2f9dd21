import type { ConnectorContext, LogMark, StreamState } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { withSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { contains, parsePosition, positionText } from './gtid.ts';
import { currentPosition } from './log-server.ts';
import { statePosition } from './log-members.ts';

/** Which tables a transaction has written is not shown. */
export const markLog = (ctx: ConnectorContext<MysqlSourceConfig>): Promise<LogMark> =>
  withSession(ctx, { phase: 'setup' }, async (session) => {
    return { position: positionText(await currentPosition(session)), open_writers: null };
  });

export function coversGtid(state: StreamState, position: string): boolean {
  const wanted = parsePosition(position);
  if (!wanted)
    throw new ConfigurationError(
      'invalid_cursor',
      `"${position}" is not a GTID position such as 0-1-100 or 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100`,
    );
  const own = statePosition(state);
  return own !== null && contains(own, wanted);
}
