import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { trpc } from '../../api.ts';
import { useMe } from '../../current-user.ts';
import { Empty } from '../../components/empty.tsx';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page, Section } from '../../components/page.tsx';
import { ConnectionList, type Summary } from '../connections/connection-list.tsx';
import { ActivityCharts } from './activity-charts.tsx';
import { HealthTiles } from './health-tiles.tsx';
import { RecentRuns } from './recent-runs.tsx';

const DAYS = 14;

/** How everything is, at one glance. */
export default function OverviewPage() {
  const me = useMe();
  const connections = useQuery(trpc.connections.summaries.queryOptions({}, { refetchInterval: 5_000 }));
  const activity = useQuery(trpc.overview.activity.queryOptions({ days: DAYS }, { refetchInterval: 15_000 }));
  return (
    <Page title="Overview" lead={`${me.account.name} · plan ${me.account.plan.name}`} actions={<NewConnection />}>
      <QueryView query={connections}>
        {(all) =>
          all.length === 0 ? (
            <Welcome />
          ) : (
            <>
              <HealthTiles connections={all} today={activity.data?.at(-1)} />
              <QueryView query={activity}>{(days) => <ActivityCharts days={days} />}</QueryView>
              <div className="columns">
                <RecentRuns />
                <Attention connections={all} />
              </div>
              <Section title="All connections" lead="The ones in trouble first.">
                <ConnectionList connections={all.toSorted((a, b) => urgency(a) - urgency(b))} />
              </Section>
            </>
          )
        }
      </QueryView>
    </Page>
  );
}

const NewConnection = () => (
  <Button component={Link} href="/console/connections/new" leftSection={<Icon name="add" size={16} />}>
    New connection
  </Button>
);

const Welcome = () => (
  <Empty icon="connection" title="Nothing moves yet">
    <p>Choose a source, test it, pick its streams and a destination: the first rows flow in a minute.</p>
    <NewConnection />
  </Empty>
);

const ORDER = ['failing', 'warning', 'running', 'pending', 'healthy'];
const urgency = ({ health, status }: Summary) => (status === 'paused' ? ORDER.length : ORDER.indexOf(health));

const MOST = 6;

function Attention({ connections }: { connections: Summary[] }) {
  const troubled = connections
    .filter(({ status, health }) => status !== 'paused' && (health === 'failing' || health === 'warning'))
    .toSorted((a, b) => urgency(a) - urgency(b));
  return (
    <Section title="Needs attention">
      {troubled.length === 0 ? (
        <p className="calm-note">
          <Icon name="check" /> Every active connection is in good health.
        </p>
      ) : (
        <ul className="lines">
          {troubled.slice(0, MOST).map(({ id, name, status, health, consecutive_failures, status_reason }) => (
            <li key={id}>
              <Link href={`/console/connections/${id}`} className="grow">
                {name}
              </Link>
              <span className="dimmed">
                {status_reason?.replaceAll('_', ' ') ??
                  (consecutive_failures > 0 ? `${consecutive_failures} failed in a row` : '')}
              </span>
              <span className="status" data-tone={health === 'failing' ? 'bad' : 'warn'}>
                {status === 'active' ? health : status.replaceAll('_', ' ')}
              </span>
            </li>
          ))}
        </ul>
      )}
      {troubled.length > MOST && (
        <Link href="/console/connections?state=failing">And {troubled.length - MOST} more</Link>
      )}
    </Section>
  );
}
