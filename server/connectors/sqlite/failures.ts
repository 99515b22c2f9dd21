import { SQLiteError } from 'bun:sqlite';
import { ConfigurationError, DataError, RetryableError, SchemaChangedError } from '../contract/errors.ts';

export const isBusy = (error: unknown): boolean =>
  error instanceof SQLiteError && /^SQLITE_(BUSY|LOCKED)/.test(error.code ?? '');

/** Turns SQLite's errors about the database `name` into ConnectorErrors. Other errors are returned unchanged. */
export function sqliteError(error: unknown, name: string): unknown {
  if (!(error instanceof SQLiteError)) return error;
  const code = error.code ?? '';
  const cause = { cause: error };
  if (isBusy(error)) {
    return new RetryableError('database_locked', `"${name}" is locked by another program that writes to it`, cause);
  }
  if (code === 'SQLITE_NOTADB') {
    return new ConfigurationError('not_a_database', `"${name}" is not a SQLite database, or it is encrypted`, cause);
  }
  if (/^SQLITE_(CANTOPEN|READONLY|PERM|AUTH)/.test(code)) {
    const message = `Cannot open "${name}". The service needs permission to read it and, in WAL mode, to write to its folder`;
    return new ConfigurationError('database_unreadable', message, cause);
  }
  if (code.startsWith('SQLITE_CORRUPT')) {
    return new DataError('database_corrupt', `"${name}" is damaged: ${error.message}`, cause);
  }
  if (/no such table/.test(error.message)) return new SchemaChangedError('table_missing', error.message, cause);
  if (/no such column/.test(error.message)) return new SchemaChangedError('column_missing', error.message, cause);
  if (code.startsWith('SQLITE_IOERR')) return new RetryableError('file_error', `"${name}": ${error.message}`, cause);
  return new DataError('sqlite_error', `"${name}": ${error.message}`, cause);
}
