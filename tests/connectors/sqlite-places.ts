import { Database } from 'bun:sqlite';
import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROWS } from './reading.ts';
import type { Place } from './places.ts';

export async function sqliteSourcePlace(): Promise<Place> {
  const filesRoot = await mkdtemp(join(tmpdir(), 'data-pipelines-sqlite-'));
  const database = new Database(join(filesRoot, 'many.db'), { create: true });
  database.run(`create table many (id integer primary key, name text, amount decimal(30, 5), at datetime not null, instant datetime,
    day date, data json, bytes blob, ratio double, flag boolean, key uuid, misfit integer)`);
  database.run(`with recursive s(n) as (select 1 union all select n + 1 from s where n < ${ROWS})
    insert into many select n, nullif('Zoë ☃ ' || n, 'Zoë ☃ 7'), n + 0.12345, datetime('2026-01-01', n || ' seconds'),
      strftime('%Y-%m-%dT%H:%M:%fZ', '2026-01-01', n || ' seconds'), date('2026-01-01', (n % 300) || ' days'),
      json_object('i', n), x'deadbeef', n / 3.0, n % 2, lower(hex(randomblob(16))), iif(n % 99 = 0, 'odd', n) from s`);
  database.run('create view some as select id, upper(name) as shout from many where id < 100');
  database.close();
  await Bun.write(join(filesRoot, 'text.db'), 'this is no database '.repeat(100));
  const leftOpen = async () => {
    const open = await readdir('/proc/self/fd');
    const links = await Promise.all(open.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')));
    return links.filter((path) => path.startsWith(filesRoot)).length;
  };
  const bad = {
    'no such file': { path: 'none.db' },
    'no database': { path: 'text.db' },
    'outside the root': { path: '../many.db' },
  };
  return { filesRoot, good: { path: 'many.db' }, bad, leftOpen, close: () => rm(filesRoot, { recursive: true }) };
}
