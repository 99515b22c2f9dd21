import { ConfigurationError } from './errors.ts';

/**
 * Tables and folders that destinations keep for themselves: positions, rejected rows, probes of the connection test, and
 * tables that are about to replace another one or were replaced.
 */
const RESERVED = /^_pipeline_|^_rejected$|__(new|old)_[0-9a-f]{8}$/i;

/** Sources hide such tables: read again, they would be written into those of the destination. */
export const isReserved = (table: string): boolean => RESERVED.test(table);

/** @throws ConfigurationError `reserved_name` */
export function refuseReserved(table: string): void {
  if (!isReserved(table)) return;
  throw new ConfigurationError(
    'reserved_name',
    `"${table}" is a name that the service uses for its own tables. Set another destination table or a table prefix`,
  );
}
