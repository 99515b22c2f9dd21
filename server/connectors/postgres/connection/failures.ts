import { as, type FailurePlace, reachFailure, tlsMissing, type ToError } from '../../kits/sql/failures.ts';
import {
  AuthenticationError,
  ConfigurationError,
  ConnectorError,
  DataError,
  RetryableError,
  SchemaChangedError,
  TimeoutError,
} from '../../contract/errors.ts';

interface DriverError extends Error {
  code?: string;
  where?: string;
  column?: string;
  routine?: string;
  constraint?: string;
  detail?: string;
}

const config = (code: string): ToError => as(ConfigurationError, code);
const retry = (code: string): ToError => as(RetryableError, code);
const data = (code: string): ToError => as(DataError, code);
const changed = (code: string): ToError => as(SchemaChangedError, code);
const denied = (code: string): ToError => as(AuthenticationError, code);

/** By SQLSTATE, else by its class (the first two characters). */
const BY_STATE: Record<string, ToError> = {
  '28P01': denied('password_wrong'),
  '28000': denied('login_refused'),
  '3D000': config('database_not_found'),
  '3F000': config('schema_not_found'),
  '42501': config('permission_denied'),
  '42P01': changed('table_missing'),
  '42703': changed('column_missing'),
  '42710': config('object_exists'),
  '42804': config('type_conflict'),
  '42883': config('type_conflict'),
  // A failover or a full disk makes a server read-only for a while.
  '25006': retry('read_only_server'),
  '25P03': retry('connection_lost'),
  '25P04': retry('connection_lost'),
  '55000': config('not_possible'),
  '55P03': retry('lock_timeout'),
  '57014': retry('query_cancelled'),
  '57P01': retry('connection_lost'),
  '57P02': retry('connection_lost'),
  '57P03': retry('server_starting'),
  '57P04': config('database_not_found'),
  '57P05': retry('connection_lost'),
  '40001': retry('serialization_failure'),
  '40P01': retry('deadlock'),
  '23502': data('null_value'),
  '23503': data('foreign_key_violation'),
  '23505': data('duplicate_key'),
  // Raised by triggers.
  P0001: data('constraint_violation'),
  '08': retry('connection_lost'),
  '40': retry('transaction_rolled_back'),
  '53': retry('server_out_of_resources'),
  '58': retry('server_system_error'),
  '22': data('invalid_value'),
  '23': data('constraint_violation'),
  '0A': config('not_supported'),
  '42': config('statement_refused'),
  '54': config('limit_exceeded'),
  '2B': config('objects_depend'),
};

/** Converts what the driver threw into a ConnectorError. */
export function connectorError(thrown: unknown, place: FailurePlace): Error {
  if (thrown instanceof ConnectorError) return thrown;
  if (!(thrown instanceof Error))
    return new RetryableError('connection_lost', `The connection to ${place.server} was lost`);
  const error: DriverError = thrown;
  const state = /^[0-9A-Z]{5}$/.test(error.code ?? '') && 'severity' in error ? error.code! : null;
  return state ? serverError(error, state) : socketError(error, place);
}

function serverError(error: DriverError, state: string): ConnectorError {
  const text = describe(error);
  if (state === '57014' && /timeout/i.test(error.message)) return new TimeoutError('statement_timeout', text);
  // The server has the same state for a missing privilege, and translates its messages.
  if (error.routine === 'check_enable_rls') {
    return new ConfigurationError(
      'row_level_security',
      `${text}. Row-level security hides rows from this user. Read as a user with BYPASSRLS, or allow it in the ` +
        'settings of the source',
    );
  }
  const make = BY_STATE[state] ?? BY_STATE[state.slice(0, 2)];
  const known = make ? make(text) : new ConnectorError('server_error', `${text} (${state})`);
  if (error.detail) details.set(known, error.detail);
  return known;
}

/** Kept apart from the errors, which are shown and logged: details repeat whole rows. */
const details = new WeakMap<ConnectorError, string>();

/**
 * The key of the rejected row, such as `id = 3`; empty if the server did not report it.
 * @param table `columns`: all columns of the table, in its order
 */
export function refusedKey(
  error: ConnectorError,
  { key, columns }: { key: readonly string[]; columns: readonly string[] },
) {
  const detail = details.get(error) ?? '';
  const [, names, keyed] = /^Key \((.+?)\)=\((.*?)\)/s.exec(detail) ?? [];
  if (names === key.join(', ')) return key.length === 1 ? `${names} = ${keyed}` : `(${names}) = (${keyed})`;
  const values = /^Failing row contains \((?!.*\) = \()(.*)\)\.$/s.exec(detail)?.[1]?.split(', ');
  // Otherwise a value contains a comma, and the values cannot be told apart.
  if (values?.length !== columns.length) return '';
  return key.map((name) => `${name} = ${values[columns.indexOf(name)]}`).join(', ');
}

/** Omits the server's `detail` and the values in its `where`, which repeat whole rows. */
function describe(error: DriverError): string {
  // JSON that is refused has lines of its own before that.
  const place = /(?:^|\n)COPY [^\n]*?, line (\d+)(?:, column ([^:\n]+))?/.exec(error.where ?? '');
  const column = place?.[2] ?? error.column;
  const parts = [
    place && `row ${place[1]}`,
    column && `column ${column}`,
    error.constraint && `constraint ${error.constraint}`,
  ].filter(Boolean);
  return `PostgreSQL: ${error.message.slice(0, 500)}${parts.length ? ` (${parts.join(', ')})` : ''}`;
}

export const refusesTls = (error: Error) => /does not support SSL/.test(error.message);

function socketError(error: DriverError, place: FailurePlace): Error {
  const { server } = place;
  if (refusesTls(error)) return tlsMissing(place);
  if (error.message === 'timeout expired') {
    return new TimeoutError('connection_timeout', `${server} did not answer in time`);
  }
  const unreached = reachFailure(error, place);
  if (unreached) return unreached;
  if (error.message.startsWith('SASL')) return new AuthenticationError('login_refused', error.message);
  if (/^E[A-Z]+$/.test(error.code ?? '') || /terminated|not queryable|SSL connection|closed/i.test(error.message)) {
    return new RetryableError('connection_lost', `The connection to ${server} was lost: ${error.message}`);
  }
  return error;
}
