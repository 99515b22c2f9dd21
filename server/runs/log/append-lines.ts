import { type SQL, sql } from 'drizzle-orm';
import { type StoredLogLine, type StoredRunError, streamRuns } from '../../../db/schema/index.ts';

/** A stream run that waits for a rate limit again and again has any number of attempts. Its last line is kept always. */
export const MAX_LOG_LINES = 500;

/** The log of a stream run with these lines, as a column of an update that is sent anyway. */
export const withLines = (lines: readonly StoredLogLine[]): SQL =>
  upToLimit(sql`${JSON.stringify(lines)}::text::jsonb`);

interface NewLine {
  level: StoredLogLine['level'];
  code: string | SQL;
  message: string | SQL;
  /** By default the current attempt. */
  attempt?: SQL;
}

/** As `withLines`, with one line of the control database's time, for several stream runs at once. */
export const withLine = (line: NewLine): SQL => upToLimit(asArray(line));

/** As `withLine`, for the line that reports the end of the stream. */
const withLastLine = (line: NewLine): SQL => sql`${streamRuns.log} || ${asArray(line)}`;

/** As `withLastLine`, after other lines. */
export const withLastLines = (lines: readonly StoredLogLine[], last: NewLine): SQL =>
  sql`${withLines(lines)} || ${asArray(last)}`;

export const failedLine = ({ code, message }: Pick<StoredRunError, 'code' | 'message'>): SQL =>
  withLastLine({ level: 'error', code, message: `Stream failed: ${message}` });

export const stoppedLine = (): SQL =>
  withLastLine({ level: 'warning', code: 'stopped', message: 'Stream stopped. Committed rows stay' });

const upToLimit = (lines: SQL): SQL =>
  sql`case when jsonb_array_length(${streamRuns.log}) < ${MAX_LOG_LINES}::int then ${streamRuns.log} || ${lines} else ${streamRuns.log} end`;

const NOW = sql`to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const asArray = ({ level, code, message, attempt = sql`${streamRuns.attempt}` }: NewLine): SQL =>
  sql`jsonb_build_array(jsonb_build_object('at', ${NOW}, 'level', ${level}::text, 'code', ${text(code)}, 'message', ${text(message)}, 'attempt', ${attempt}))`;

const text = (value: string | SQL): SQL => (typeof value === 'string' ? sql`${value}::text` : value);
