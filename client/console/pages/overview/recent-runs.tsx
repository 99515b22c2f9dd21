import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { trpc } from '../../api.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { formatCompact, pluralize } from '../../components/format.ts';
import { QueryView } from '../../components/query-view.tsx';
import { Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';

export function RecentRuns() {
  const runs = useQuery(trpc.overview.recentRuns.queryOptions({ limit: 6 }, { refetchInterval: 3_000 }));
  return (
    <Section title="Recent runs">
      <QueryView query={runs}>
        {(list) =>
          list.length === 0 ? (
            <p className="calm-note">No runs yet</p>
          ) : (
            <ul className="lines">
              {list.map((run) => (
                <li key={run.id}>
                  <Link
                    href={`/console/connections/${run.connection_id}/runs/${run.id}`}
                    className="grow numbered-link"
                    title={`${run.connection_name} #${run.number}`}
                  >
                    <span>{run.connection_name}</span> <span className="number">#{run.number}</span>
                  </Link>
                  <Status value={run.status} />
                  <span className="dimmed line-facts">
                    {pluralize(run.rows_loaded, 'row', formatCompact)} · <RelativeTime at={run.created_at} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </QueryView>
    </Section>
  );
}
