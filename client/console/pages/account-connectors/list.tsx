import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Empty } from '../../components/empty.tsx';
import { plural } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';

const WORDS = {
  source: { title: 'Sources', lead: 'Where rows come from.', one: 'source' },
  destination: { title: 'Destinations', lead: 'Where rows go.', one: 'destination' },
} as const;

/** Sources, or destinations: how each is and who uses it. */
export function AccountConnectorsPage({ type }: { type: 'source' | 'destination' }) {
  const { title, lead, one } = WORDS[type];
  const connectors = useQuery(
    trpc.account_connectors.list.queryOptions({ connector_type: type }, { refetchInterval: 15_000 }),
  );
  const mayCreate = useMay(`${type}s.create`);
  const create = mayCreate && (
    <Button component={Link} href={`/console/${type}s/new`} leftSection={<Icon name="add" size={16} />}>
      New {one}
    </Button>
  );
  return (
    <Page title={title} lead={lead} actions={create}>
      <QueryView query={connectors}>
        {(list) =>
          list.length === 0 ? (
            <Empty icon={type} title={`No ${one} yet`}>
              {create}
            </Empty>
          ) : (
            <ul className="connector-cards">
              {list.map((connector) => (
                <li key={connector.id}>
                  <Link href={`/console/${type}s/${connector.id}`} className="card connector-card">
                    <span className="connector-mark" aria-hidden="true">
                      {connector.connector_display_name.slice(0, 2)}
                    </span>
                    <span className="grow">
                      <b>{connector.name}</b>
                      <span className="dimmed">{connector.connector_display_name}</span>
                    </span>
                    <Status value={connector.status} />
                    <span className="dimmed connector-facts">
                      <span>{plural(connector.connections_count, 'connection')}</span>
                      {type === 'source' && <span>{plural(connector.streams_count, 'stream')}</span>}
                      <span>
                        tested <RelativeTime at={connector.last_tested_at} never="never" />
                      </span>
                    </span>
                  </Link>
                </li>
              ))}
            </ul>
          )
        }
      </QueryView>
    </Page>
  );
}
