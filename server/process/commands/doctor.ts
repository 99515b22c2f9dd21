import { statfsSync } from 'node:fs';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../db/index.ts';
import { readMigrations } from '../../../db/migrate.ts';
import type { Db } from '../../../db/types.ts';
import type { Config } from '../../platform/config.ts';
import { openObjectStore } from '../../platform/object-store.ts';
import { openSecrets } from '../../platform/secrets.ts';
import { queueDepths } from '../../queue/queue-depth.ts';
import { withDatabase } from './database-of.ts';

/** What one look found: nothing, or a sentence with what to do. */
type Findings = string[];

const MIN_FREE = 0.1;
const STALLED_SECONDS = 300;
const MAX_CLOCK_MS = 5_000;

/** `doctor`: what is wrong with this installation, in words. Changes nothing. The exit code is 1 with findings. */
export async function doctorCommand(config: Config, _: string[], say: (line: string) => void): Promise<number> {
  const found: Findings = [];
  const look = async (what: string, work: () => Promise<Findings> | Findings) => {
    const problems = await Promise.resolve()
      .then(work)
      .catch((error: unknown) => [error instanceof Error ? error.message : String(error)]);
    say(problems.length === 0 ? `ok       ${what}` : problems.map((one) => `problem  ${what}: ${one}`).join('\n'));
    found.push(...problems);
    return problems.length === 0;
  };
  await look('disk of DATA_DIR', () => diskOf(config));
  await look('object store', () => objectStore(config));
  await look('control database', () =>
    withDatabase(config, async (url) => {
      if (!(await look('migrations', () => migrations(url)))) return [];
      const database = openDatabase(url, { max: 2 });
      try {
        for (const [what, work] of Object.entries(LOOKS)) await look(what, () => work(database.db, config));
      } finally {
        await database.close();
      }
      return [];
    }),
  );
  const count = found.length;
  say(count === 0 ? 'Nothing is wrong' : `${count} ${count === 1 ? 'problem' : 'problems'}`);
  return count === 0 ? 0 : 1;
}

function diskOf({ DATA_DIR }: Config): Findings {
  const { bavail, blocks } = statfsSync(DATA_DIR);
  const free = bavail / blocks;
  return free >= MIN_FREE ? [] : [`${Math.floor(free * 100)} % of the disk of ${DATA_DIR} are free. Free some space`];
}

async function objectStore({ OBJECT_STORE_URL }: Config): Promise<Findings> {
  const objects = openObjectStore(OBJECT_STORE_URL);
  try {
    await objects.put('health/doctor', new Uint8Array([1]));
    await objects.delete('health/doctor');
    return [];
  } catch (error) {
    return [`it cannot be written: ${(error as Error).message}. Check OBJECT_STORE_URL`];
  }
}

async function migrations(url: string): Promise<Findings> {
  const { pending, skipped, unknown } = await readMigrations(url);
  return [
    ...(unknown > 0 ? [`the database belongs to a newer version (${unknown} migrations). Start that version`] : []),
    ...(skipped.length > 0 ? [`${skipped.join(', ')} was never applied, although later ones were`] : []),
    ...(pending.length > 0 ? [`${pending.length} are pending. Start the API, or run: migrate`] : []),
  ];
}

/** Looks at a migrated database. */
const LOOKS: Record<string, (db: Db, config: Config) => Promise<Findings>> = {
  'secret key': async (db, config) => {
    const { key_id } = openSecrets(config.SECRET_KEY);
    const [row] = await db.execute<{ key_id: string | null }>(sql`select key_id from installation`);
    const rings = await db.execute<{ key_id: string }>(sql`select key_id from key_ring`);
    if (!row || row.key_id === null || row.key_id === key_id) {
      const former = rings.filter((one) => one.key_id !== key_id).length;
      return former > 0 ? ['a former SECRET_KEY still opens the database. Retire it by: rotate-key --retire'] : [];
    }
    if (rings.some((one) => one.key_id === key_id))
      return ['SECRET_KEY is a former key of the database. Set it to the new key'];
    return [
      `SECRET_KEY has the id ${key_id}, the database was encrypted with ${row.key_id}. Set SECRET_KEY to that key`,
    ];
  },
  'root key': async (db) => {
    const [row] = await db.execute<{ added: number; used: number }>(sql`
      select coalesce((select max(version) from root_keys), 1) as added,
        coalesce((select root_version from installation), 1) as used`);
    return row!.added > row!.used ? ['its rotation was interrupted. Complete it by: rotate-key --root'] : [];
  },
  clock: async (db) => {
    const before = Date.now();
    const [row] = await db.execute<{ ms: number }>(
      sql`select extract(epoch from clock_timestamp())::float * 1000 as ms`,
    );
    const off = (row?.ms ?? before) - (before + Date.now()) / 2;
    return Math.abs(off) < MAX_CLOCK_MS
      ? []
      : [`this machine and the database differ by ${Math.round(off / 1000)} s. Set up NTP`];
  },
  sessions: async (db) => {
    const [row] = await db.execute<{ used: number; allowed: number }>(sql`
      select count(*)::int as used, current_setting('max_connections')::int as allowed
      from pg_stat_activity where backend_type = 'client backend'`);
    const { used, allowed } = row!;
    return used < 0.9 * allowed
      ? []
      : [`${used} of ${allowed} sessions of PostgreSQL are in use. Raise max_connections`];
  },
  queue: async (db) => {
    const [table] = await db.execute<{ found: string | null }>(sql`select to_regclass('pgboss.job')::text as found`);
    if (!table?.found) return ['no worker has ever started. Start one'];
    const stalled = (await queueDepths(db)).filter(({ oldest_due_seconds: age }) => age > STALLED_SECONDS);
    return stalled.map(({ queue, due, oldest_due_seconds }) => {
      const minutes = Math.round(oldest_due_seconds / 60);
      return `${due} jobs of ${queue} wait, the oldest for ${minutes} minutes. Start more workers, or look at their log`;
    });
  },
  triggers: async (db) => {
    const [row] = await db.execute<{ age: number | null }>(sql`
      select extract(epoch from now() - min(occurred_at))::float as age from events
      where processing_status in ('received', 'evaluating')`);
    return (row?.age ?? 0) < STALLED_SECONDS ? [] : ['events wait to be evaluated. Check that a worker runs'];
  },
  schedules: async (db) => {
    const [row] = await db.execute<{ held: string | null; late: number }>(sql`
      select (select held_at::text from installation) as held,
        (select count(*)::int from connections where deleted_at is null and next_run_at < now() - interval '5 minutes') as late`);
    if (row?.held) return [`they are held since a restore (${row.held}). Release them by: resume`];
    return row?.late ? [`${row.late} connections are due and did not start. Check that a worker runs`] : [];
  },
  sources: async (db) => {
    const rows = await db.execute<{ name: string; status: string; type: string }>(sql`
      select name, connector_type as type, status from account_connectors a
      where deleted_at is null and status = 'broken' and exists (select from connections c
        where c.deleted_at is null and c.status = 'active' and a.id in (c.source_id, c.destination_id)) order by 1 limit 20`);
    return rows.map(
      ({ name, type }) => `the ${type} "${name}" is broken and active connections use it. Test it in the console`,
    );
  },
  logs: async (db) => {
    const rows = await db.execute<{ name: string; gb: number }>(sql`
      select c.name, round(max(r.lag_bytes) / 1e9, 1)::float as gb from change_readers r
        join connection_streams s on s.id = r.stream_id join connections c on c.id = s.connection_id
      group by c.id having max(r.lag_bytes) > 10e9 order by 2 desc limit 20`);
    return rows.map(
      ({ name, gb }) => `the source of "${name}" keeps ${gb} GB of log. Run the connection, or delete it`,
    );
  },
  mail: async (db, { SMTP_URL }) => {
    if (SMTP_URL !== null) return [];
    const [row] = await db.execute<{ count: number }>(sql`
      select count(*)::int as count from triggers where deleted_at is null and enabled and not is_system
        and actions @> '[{"type": "send_email"}]'::jsonb`);
    return row?.count ? [`${row.count} triggers send mail, but SMTP_URL is not set. Set it`] : [];
  },
};
