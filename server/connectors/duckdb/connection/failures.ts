import {
  ConfigurationError,
  ConnectorError,
  DataError,
  RetryableError,
  SchemaChangedError,
} from '../../contract/errors.ts';

/** DuckDB's errors have no codes; their texts begin with their kind. */
const textOf = (error: unknown) => (error instanceof Error ? error.message : '');

/** Another process has the file open. */
export const isLocked = (error: unknown) => /Could not set lock on file/.test(textOf(error));
/** A value that its type has no room for. */
export const isMisfit = (error: unknown) =>
  /^(Conversion|Out of Range|Invalid Input) Error|malformed json/i.test(textOf(error));

/** A rule of the table. */
export const isViolation = (error: unknown) => textOf(error).startsWith('Constraint Error');

/** A value that a unique index has already. */
export const isDuplicate = (error: unknown) => /^Constraint Error: .*duplicate key/i.test(textOf(error));

/** Where a commit has run out of memory, that is said behind the kind of the error. */
export const isOutOfMemory = (error: unknown) =>
  /^Out of Memory Error|failed to (?:pin|allocate) |could not allocate /i.test(textOf(error));

export interface Place {
  /** Whole: DuckDB names it, users are not told. */
  path: string;
  /** As the settings have it. */
  name: string;
}

/** Makes a ConnectorError of what DuckDB says. Anything else comes back as it is. */
export function duckDbError(error: unknown, { path, name }: Place): unknown {
  if (error instanceof ConnectorError || !(error instanceof Error) || !/^[A-Z][\w ]+ Error: /.test(error.message)) {
    return error;
  }
  const message = (error.message.split('\n')[0] ?? '').replaceAll(path, name);
  const cause = { cause: error };
  if (isLocked(error)) {
    const locked = `"${name}" is open in another process: DuckDB lets one process write, or several read, at a time`;
    return new RetryableError('database_locked', locked, cause);
  }
  if (/not a valid DuckDB database file/.test(message)) {
    return new ConfigurationError('not_a_database', `"${name}" is no DuckDB database`, cause);
  }
  if (/with version number|newer version of DuckDB/i.test(message)) {
    return new ConfigurationError('version_unsupported', `"${name}" was written by another version of DuckDB`, cause);
  }
  if (/^Catalog Error: (Table|View) with name .* does not exist|^Catalog Error: Schema/.test(message)) {
    return new SchemaChangedError('table_missing', message, cause);
  }
  if (/^Binder Error: .*(does not have a column|not found in FROM)/.test(message)) {
    return new SchemaChangedError('column_missing', message, cause);
  }
  if (isMisfit(error)) return new DataError('value_does_not_fit', message, cause);
  if (/^(Constraint|Dependency|Catalog|Binder|Permission|Not implemented) Error/.test(message)) {
    return new ConfigurationError('refused_by_database', message, cause);
  }
  if (isOutOfMemory(error)) {
    const limits = `"${name}": DuckDB has used up the memory that it may use. It works on 2,048 rows at a time`;
    return new DataError('out_of_memory', `${limits}: rows of many kilobytes each may be too wide for it`, cause);
  }
  if (message.startsWith('IO Error')) return new RetryableError('file_error', message, cause);
  return new DataError('duckdb_error', message, cause);
}
