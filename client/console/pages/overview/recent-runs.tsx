import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { ask } from '../../api.ts';
import { Ago } from '../../components/ago.tsx';
import { compact } from '../../components/format.ts';
import { Loaded } from '../../components/loaded.tsx';
import { Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';

export function RecentRuns() {
  const runs = useQuery({ ...ask('overview.recentRuns', { limit: 6 }), refetchInterval: 3_000 });
  return (
    <Section title="Recent runs">
      <Loaded query={runs}>
        {(list) =>
          list.length === 0 ? (
            <p className="calm-note">No run yet.</p>
          ) : (
            <ul className="lines">
              {list.map((run) => (
                <li key={run.id}>
                  <Link href={`/console/connections/${run.connection_id}/runs/${run.id}`} className="grow">
                    {run.connection_name} <span className="number">#{run.number}</span>
                  </Link>
                  <span className="dimmed number">{compact(run.rows_loaded)} rows</span>
                  <span className="dimmed">
                    <Ago at={run.created_at} />
                  </span>
                  <Status value={run.status} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}
