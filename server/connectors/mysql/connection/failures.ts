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
  /** The server's error number, or a negative number of the operating system. */
  errno?: number;
  sqlState?: string;
}

const lost = as(RetryableError, 'connection_lost');
const denied = as(ConfigurationError, 'permission_denied');
// A failover makes a server read-only for a while.
const readOnly = as(RetryableError, 'read_only_server');
/** The number stands for any option of the server that forbids a statement. */
const forbidden: ToError = (text) =>
  /read.only/i.test(text) ? readOnly(text) : new ConfigurationError('not_supported', text);
const exhausted = as(RetryableError, 'server_out_of_resources');
const invalid = as(DataError, 'invalid_value');
const changed = as(SchemaChangedError, 'table_missing');
const unreferenced = as(DataError, 'foreign_key_violation');
const broken = as(DataError, 'constraint_violation');

/** By the server's error number. 1900 to 1999 and 4000 upwards are MariaDB's own, the 3000s MySQL's. */
const BY_NUMBER: Record<number, ToError> = {
  1021: exhausted,
  1037: exhausted,
  1038: exhausted,
  1040: exhausted,
  1041: exhausted,
  1042: as(AuthenticationError, 'login_refused'),
  1044: denied,
  1045: as(AuthenticationError, 'password_wrong'),
  1048: as(DataError, 'null_value'),
  1049: as(ConfigurationError, 'database_not_found'),
  1051: changed,
  1053: lost,
  1054: as(SchemaChangedError, 'column_missing'),
  1062: as(DataError, 'duplicate_key'),
  1071: as(ConfigurationError, 'limit_exceeded'),
  1114: exhausted,
  1117: as(ConfigurationError, 'limit_exceeded'),
  1118: as(ConfigurationError, 'limit_exceeded'),
  1129: as(ConfigurationError, 'host_blocked'),
  1130: as(AuthenticationError, 'login_refused'),
  1142: denied,
  1143: denied,
  1146: changed,
  1152: lost,
  1153: as(ConfigurationError, 'packet_too_large'),
  1158: lost,
  1159: lost,
  1160: lost,
  1161: lost,
  1203: exhausted,
  1205: as(RetryableError, 'lock_timeout'),
  1213: as(RetryableError, 'deadlock'),
  1226: exhausted,
  1227: denied,
  1231: as(ConfigurationError, 'not_supported'),
  1251: as(AuthenticationError, 'login_refused'),
  1263: as(DataError, 'null_value'),
  1264: as(DataError, 'value_out_of_range'),
  1265: invalid,
  1290: forbidden,
  1292: invalid,
  1317: as(RetryableError, 'query_cancelled'),
  1364: as(DataError, 'null_value'),
  1366: invalid,
  1367: invalid,
  1370: denied,
  1406: as(DataError, 'value_too_long'),
  1411: invalid,
  // Its definition is newer than the snapshot.
  1412: as(RetryableError, 'table_changed'),
  1451: unreferenced,
  1452: unreferenced,
  1524: as(AuthenticationError, 'login_refused'),
  // Raised by triggers.
  1644: broken,
  1698: as(AuthenticationError, 'password_wrong'),
  1792: readOnly,
  1820: as(AuthenticationError, 'password_expired'),
  1836: readOnly,
  1862: as(AuthenticationError, 'password_expired'),
  1927: lost,
  1969: as(TimeoutError, 'statement_timeout'),
  3024: as(TimeoutError, 'statement_timeout'),
  3118: as(AuthenticationError, 'login_refused'),
  3140: invalid,
  3159: as(ConfigurationError, 'tls_required'),
  3819: broken,
  4025: broken,
  4151: as(AuthenticationError, 'login_refused'),
};

/** By the first two characters of the SQLSTATE, for numbers not listed above. */
const BY_CLASS: Record<string, ToError> = {
  '08': lost,
  '22': invalid,
  '23': broken,
  '28': as(AuthenticationError, 'login_refused'),
  '40': as(RetryableError, 'transaction_rolled_back'),
  '42': as(ConfigurationError, 'statement_refused'),
  '70': as(RetryableError, 'query_cancelled'),
};

/** Converts what the driver threw into a ConnectorError. */
export function connectorError(thrown: unknown, place: FailurePlace): Error {
  if (thrown instanceof ConnectorError) return thrown;
  if (!(thrown instanceof Error)) return lost(`The connection to ${place.server} was lost`);
  const error: DriverError = thrown;
  if (error.sqlState === undefined && !(error.errno! >= 1000)) return socketError(error, place);
  return serverError(error.errno!, error.message, error.sqlState);
}

/** Truncated, because messages quote values that may be whole documents. */
const describe = (message: string) => `MySQL: ${message.slice(0, 500)}`;

function serverError(number: number, message: string, state = ''): ConnectorError {
  // Numbers below 1000 are problems with the server's own files.
  const own = number < 1000 ? as(RetryableError, 'server_system_error') : undefined;
  const make = BY_NUMBER[number] ?? own ?? BY_CLASS[state.slice(0, 2)];
  return make?.(describe(message)) ?? new ConnectorError('server_error', `${describe(message)} (${number})`);
}

/** The error for a warning about a value that the server adjusted. */
export const warningError = (number: number, message: string) => (BY_NUMBER[number] ?? invalid)(describe(message));

export const refusesTls = (error: Error) => (error as DriverError).code === 'HANDSHAKE_NO_SSL_SUPPORT';

function socketError(error: DriverError, place: FailurePlace): Error {
  const { server } = place;
  const code = error.code ?? '';
  if (refusesTls(error)) return tlsMissing(place);
  const unreached = reachFailure(error, place);
  if (unreached) return unreached;
  if (/^AUTH_SWITCH|auth.*plugin/i.test(`${code} ${error.message}`)) {
    return new AuthenticationError(
      'login_refused',
      `${server} requires an authentication method that is not supported`,
    );
  }
  if (/^(E[A-Z]+|PROTOCOL_.*)$/.test(code) || /closed state|closed the connection|out of order/i.test(error.message)) {
    return lost(`The connection to ${server} was lost: ${error.message}`);
  }
  return error;
}
