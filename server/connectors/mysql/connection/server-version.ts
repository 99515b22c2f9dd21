import type { ServerSettings } from './settings.ts';

/** MySQL and MariaDB differ in a few statements. */
export interface ServerVersion {
  flavor: 'MySQL' | 'MariaDB';
  /** As reported by the server. */
  text: string;
  /** 10.11 is 1011. */
  number: number;
}

/** `8.0.36`, `10.11.6-MariaDB-1` or, with the prefix of an old replication workaround, `5.5.5-10.11.6-MariaDB`. */
export function versionOf(text: string): ServerVersion {
  const flavor = /mariadb/i.test(text) ? 'MariaDB' : 'MySQL';
  const [, major = '0', minor = '0'] = /^(?:5\.5\.5-(?=1\d\.))?(\d+)\.(\d+)/.exec(text) ?? [];
  return { flavor, text, number: Number(major) * 100 + Number(minor) };
}

/** Compares trailing blanks and case, so that different texts are never equal. */
export const exactCollation = ({ flavor }: ServerVersion) =>
  flavor === 'MariaDB' ? 'utf8mb4_nopad_bin' : 'utf8mb4_0900_bin';

/**
 * A value has the same text on every server, whatever its defaults are. Strict mode prevents silent truncation, but zero
 * dates are allowed, since a source may contain them, and a column that numbers its rows keeps a 0. GROUP_CONCAT would cut
 * its result at 1,024 bytes on MySQL, with no more than a warning. Timeouts leave time for a slow counterpart, but are
 * finite: a frozen worker must not hold its locks forever.
 */
export function sessionSettings({ flavor }: ServerVersion, config: ServerSettings): string[] {
  const seconds = config.statement_timeout_seconds;
  const limit = flavor === 'MariaDB' ? `max_statement_time = ${seconds}` : `max_execution_time = ${seconds * 1000}`;
  return [
    'set names utf8mb4',
    `set time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO', autocommit = 1, sql_notes = 1,
       group_concat_max_len = 4294967295, sql_safe_updates = 0, sql_select_limit = 18446744073709551615,
       sql_big_selects = 1, net_read_timeout = 3600, net_write_timeout = 3600, wait_timeout = 3600, lock_wait_timeout = 60, innodb_lock_wait_timeout = 50, ${limit}`,
  ];
}
