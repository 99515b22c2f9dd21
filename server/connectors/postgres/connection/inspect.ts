import type { SessionState } from '../../contract/connector.ts';
import { lockHolder, type RowFlow } from '../../kits/sql/session.ts';
import { CopyIn } from './copy-in.ts';
import { CopyOut } from './copy-out.ts';
import type { QueryResult, Row } from './result.ts';

/** The wait events of its parallel workers are signs of the statement, too. */
const ACTIVITY = `
  select a.state, a.wait_event_type,
         concat_ws(' ', a.wait_event_type, a.wait_event, a.query_start, (
           select string_agg(concat_ws(':', w.pid, w.wait_event), ' ' order by w.pid)
             from pg_stat_activity w where w.leader_pid = a.pid)),
         current_setting('server_version_num')::int >= 140000
    from pg_stat_activity a where a.pid = $1::int`;
const PROGRESS = 'select bytes_processed, tuples_processed from pg_stat_progress_copy where pid = $1::int';
/** A wait for a row is one for the transaction that wrote it; the table is that of the row's own lock. */
const AWAITED = `
  select coalesce(max(relation::regclass::text) filter (where not granted and relation is not null),
                  'a row of ' || max(relation::regclass::text) filter (where locktype = 'tuple'),
                  max('an advisory lock') filter (where not granted and locktype = 'advisory'), 'a transaction')
    from pg_locks where pid = $1::int`;
const HOLDERS = `
  select h.pid, a.usename, a.application_name, a.state, to_char(a.xact_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         upper(substring(a.query from '^[\\s(]*([A-Za-z]+)'))
    from unnest(pg_blocking_pids($1::int)) h(pid) left join pg_stat_activity a on a.pid = h.pid
   order by a.xact_start limit 3`;

interface Asked {
  query(text: string, options: { values: string[] }): Promise<QueryResult>;
}

/** What the server shows of the session `pid`, asked over `session`. `flow`: the COPY that it runs. */
export async function inspectSession(session: Asked, pid: string, flow: RowFlow | null): Promise<SessionState> {
  const ask = async (text: string) => (await session.query(text, { values: [pid] })).rows;
  const [activity] = await ask(ACTIVITY);
  if (!activity) return { state: 'lost', reason: 'The server no longer has the session' };
  const [status, wait, sign, has_progress] = activity;
  if (wait === 'Lock') {
    const [[on] = []] = await ask(AWAITED);
    return { state: 'blocked', on: on ?? 'a lock', holders: (await ask(HOLDERS)).map(lockHolder) };
  }
  if (status !== 'active' || wait === 'Client') {
    return { state: 'lost', reason: `The server waits for this service (${status ?? 'unknown'})` };
  }
  const [progress = []] = has_progress === 't' ? await ask(PROGRESS) : [];
  return {
    state: 'working',
    sign: [sign, ...progress].join(' '),
    must_advance: mustAdvance(flow, progress),
  };
}

/** The checks at the end of a COPY come after all of its bytes, as a sort comes before the first row. */
function mustAdvance(flow: RowFlow | null, [consumed]: Row): boolean {
  if (flow instanceof CopyOut) return flow.isSteady();
  if (flow instanceof CopyIn && consumed != null) return Number(consumed) < flow.bytes();
  return false;
}
