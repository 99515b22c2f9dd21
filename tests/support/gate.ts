import { randomInt } from 'node:crypto';
import postgres from 'postgres';
import type { MariaDb } from './mariadb.ts';
import { until } from './until.ts';

export interface Gate {
  /** Waits until a writer stands before the gate. */
  reached(): Promise<void>;
  /** Lets all rows pass from now on. */
  open(): Promise<void>;
}

/**
 * Rows of a PostgreSQL table that meet `condition` (SQL over `new`) are held before they are written: a place in the
 * middle of a run at which a fault can be made, however fast the writer is. Looking for the middle by its progress
 * misses it on a fast machine.
 */
export async function closeGate(url: string, table: string, condition: string): Promise<Gate> {
  const holder = postgres(url, { max: 1, onnotice: () => {} });
  const key = randomInt(2 ** 31 - 1);
  await holder`select pg_advisory_lock(${key})`;
  await holder.unsafe(`
    create function gate_${key}() returns trigger language plpgsql as $$
      begin perform pg_advisory_lock_shared(${key}); perform pg_advisory_unlock_shared(${key}); return new; end $$;
    create trigger gate_${key} before insert or update on ${table}
      for each row when (${condition}) execute function gate_${key}()`);
  return {
    reached: () =>
      until(async () => {
        const waiting = await holder`select 1 from pg_locks
          where locktype = 'advisory' and objid = ${key} and not granted`;
        return waiting.length > 0;
      }),
    async open() {
      await holder`select pg_advisory_unlock(${key})`;
      await holder.unsafe(`drop trigger gate_${key} on ${table}; drop function gate_${key}()`);
      await holder.end();
    },
  };
}

/** The same for a table of MariaDB, by a session of its own. */
export async function closeMariaDbGate(
  server: MariaDb,
  place: { database: string; table: string; condition: string },
): Promise<Gate> {
  const { database, table, condition } = place;
  const holder = await server.session(database);
  const name = `gate_${randomInt(2 ** 31 - 1)}`;
  const events = ['insert', 'update'];
  await holder.run(`do get_lock('${name}', 0)`);
  for (const event of events) {
    await holder.run(`create trigger ${name}_${event} before ${event} on ${table} for each row
      if ${condition} then do get_lock('${name}', 600); do release_lock('${name}'); end if`);
  }
  return {
    reached: () =>
      until(async () => {
        const waiting = await server.sql(
          `select 1 from information_schema.processlist where state = 'User lock' and db = '${database}'`,
        );
        return waiting.length > 0;
      }),
    async open() {
      await holder.run(`do release_lock('${name}')`);
      for (const event of events) await holder.run(`drop trigger ${name}_${event}`);
      await holder.close();
    },
  };
}
