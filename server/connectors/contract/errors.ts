export type ConnectorErrorType =
  | 'config_error'
  | 'auth_error'
  | 'rate_limited'
  | 'schema_changed'
  | 'transient_error'
  | 'system_error'
  | 'timeout';

/** The base of all errors that a connector throws on purpose. The class decides what the engine does with it. */
export class ConnectorError extends Error {
  readonly type: ConnectorErrorType = 'system_error';
  readonly retryable: boolean = false;
  /** @param code for programs, e.g. `connection_refused`. @param message for the user: no secrets, no stack. */
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

/** The other side did not answer in time; worth another attempt. */
export class TimeoutError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'timeout';
  override readonly retryable = true;
}

/** The credentials are wrong, expired or revoked. Trying again is useless until somebody changes them. */
export class AuthenticationError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'auth_error';
}

/** The settings are wrong: unknown host or database, missing table or right, a value out of range. */
export class ConfigurationError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'config_error';
}

/** The source is not what the catalog says any more: a column or table is gone. */
export class SchemaChangedError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'schema_changed';
}

/** The data itself cannot be loaded: malformed CSV, a value that does not fit its column. */
export class DataError extends ConnectorError {
  override readonly type: ConnectorErrorType = 'system_error';
}

/** The other side asks to wait until `until`; that costs no attempt. */
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

/** A newer attempt owns this stream: whoever sees this must stop at once and write nothing. */
export class FencedError extends ConnectorError {
  constructor() {
    super('fenced', 'Another worker has taken over this stream');
  }
}
