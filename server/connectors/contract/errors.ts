export type ConnectorErrorType =
  | 'config_error'
  | 'auth_error'
  | 'rate_limited'
  | 'schema_changed'
  | 'transient_error'
  | 'system_error'
  | 'timeout';

/** Base of all errors that connectors throw deliberately. The class determines how the engine reacts. */
export class ConnectorError extends Error {
  readonly type: ConnectorErrorType = 'system_error';
  readonly retryable: boolean = false;
  /**
   * @param code for programs, such as `connection_refused`
   * @param message for users: what failed, on what, what to do. Contains no secret and no stack trace
   */
  constructor(
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Worth another attempt: a lost connection, a 503, a deadlock. */
export class RetryableError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'transient_error';
  override readonly retryable = true;
}

/** The other side did not respond in time; worth another attempt. */
export class TimeoutError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'timeout';
  override readonly retryable = true;
}

/** The credentials are wrong, expired or revoked. Another attempt is useless until they change. */
export class AuthenticationError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'auth_error';
}

/** The settings are wrong: unknown host or database, missing table or permission, a value out of range. */
export class ConfigurationError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'config_error';
}

/**
 * The stream cannot be read on from its position, as without the slot that kept the log for it, and can be once its cursor
 * is reset. It says nothing about the source and the other streams.
 */
export class CannotContinueError extends ConfigurationError {}

/** The source no longer matches the catalog: a column or table is gone. */
export class SchemaChangedError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'schema_changed';
}

/** The data itself cannot be loaded: malformed CSV, a value that does not fit its column. */
export class DataError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'system_error';
}

/** The other side asks to wait until `until`. The wait does not count as an attempt. */
export class RateLimitedError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'rate_limited';
  override readonly retryable = true;
  constructor(
    readonly until: Date,
    message: string,
  ) {
    super('rate_limited', message);
  }
}

/** A newer attempt owns this stream. The older one stops at once and writes nothing. */
export class FencedError extends ConnectorError {
  /** @param fence the one that the destination holds; null: unknown */
  constructor(readonly fence: number | null = null) {
    super('fenced', 'Another worker has taken over this stream');
  }
}

/** All classes above, for errors that come from another process by name. */
export const CONNECTOR_ERRORS = [
  RetryableError,
  TimeoutError,
  AuthenticationError,
  ConfigurationError,
  SchemaChangedError,
  DataError,
  RateLimitedError,
  FencedError,
  ConnectorError,
];
