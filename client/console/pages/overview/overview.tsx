import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { sortConnections, stateOf } from '../../../connection-filters.ts';
import { trpc } from '../../api.ts';
import { useCurrentUser, usePermission } from '../../current-user.ts';
import { Empty } from '../../components/empty.tsx';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { pluralize } from '../../components/format.ts';
import { Page, Section } from '../../components/page.tsx';
import { labelOf, Status } from '../../components/status.tsx';
import { ConnectionList } from '../connections/connection-list.tsx';
import { useSummaries } from '../connections/use-summaries.ts';
import { ActivityCharts } from './activity-charts.tsx';
import { Checklist } from './checklist.tsx';
import { HealthTiles } from './health-tiles.tsx';
import { RecentRuns } from './recent-runs.tsx';
import type { Summary } from '../../answers.ts';

const DAYS = 14;

/** The state of all pipelines at a glance. */
export default function OverviewPage() {
  const me = useCurrentUser();
  const connections = useSummaries();
  const activity = useQuery(trpc.overview.activity.queryOptions({ days: DAYS }, { refetchInterval: 15_000 }));
  return (
    <Page title="Overview" lead={`${me.account.name} · ${me.account.plan.name} plan`} actions={<NewConnection />}>
      <QueryView query={connections}>
        {(all) =>
          all.length === 0 ? (
            <>
              <Checklist connections={all} />
              <Welcome />
            </>
          ) : (
            <>
              <Checklist connections={all} />
              <HealthTiles connections={all} today={activity.data?.at(-1)} />
              <QueryView query={activity}>{(days) => <ActivityCharts days={days} />}</QueryView>
              <div className="columns">
                <RecentRuns />
                <Attention connections={all} />
              </div>
              <Section title="All connections" lead="Connections that need attention come first">
                <ConnectionList connections={sortConnections(all, 'state')} />
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
  <Empty icon="connection" title="Create your first connection">
    <p>Connect a source, select its streams and a destination. The first rows arrive within a minute.</p>
    <NewConnection />
  </Empty>
);

const MAX_SHOWN = 6;

/** Until problems are sent to a place, they are only seen here. */
function NotificationsHint() {
  const may = usePermission('triggers.update');
  const triggers = useQuery(trpc.automation.listTriggers.queryOptions({ include_system: true }, { enabled: may }));
  if (!may || !triggers.data || triggers.data.some(({ actions }) => actions.length > 0)) return null;
  return (
    <p className="calm-note">
      <Icon name="trigger" />
      <span>
        Failures are not sent anywhere yet. <Link href="/console/triggers">Set up notifications</Link>
      </span>
    </p>
  );
}

function Attention({ connections }: { connections: Summary[] }) {
  const unhealthy = sortConnections(
    connections.filter(({ status, health }) => status !== 'paused' && (health === 'failing' || health === 'warning')),
    'state',
  );
  return (
    <Section title="Needs attention">
      <NotificationsHint />
      {unhealthy.length === 0 ? (
        <p className="calm-note">
          <Icon name="check" /> All active connections are healthy
        </p>
      ) : (
        <ul className="lines">
          {unhealthy.slice(0, MAX_SHOWN).map(({ id, name, status, health, consecutive_failures, status_reason }) => (
            <li key={id}>
              <Link href={`/console/connections/${id}`} className="grow" title={name}>
                {name}
              </Link>
              <Status value={stateOf({ status, health })} />
              <span className="dimmed line-facts">
                {(status_reason && labelOf(status_reason)) ??
                  (consecutive_failures > 0 ? pluralize(consecutive_failures, 'consecutive failure') : '')}
              </span>
            </li>
          ))}
        </ul>
      )}
      {unhealthy.length > MAX_SHOWN && (
        <Link href="/console/connections">View {unhealthy.length - MAX_SHOWN} more</Link>
      )}
    </Section>
  );
}
