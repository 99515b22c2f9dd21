import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Empty } from '../../components/empty.tsx';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { ConnectorMark } from './connector-mark.tsx';

const TEXTS = {
  source: {
    title: 'Sources',
    lead: 'Where connections read data from',
    help: 'A source is a database, API or file store that connections read from.',
  },
  destination: {
    title: 'Destinations',
    lead: 'Where connections write data to',
    help: 'A destination is a database, file store or application that connections write to.',
  },
} as const;

/** The list of sources, or of destinations. */
export function AccountConnectorsPage({ type }: { type: 'source' | 'destination' }) {
  const { title, lead, help } = TEXTS[type];
  const connectors = useQuery(
    trpc.account_connectors.list.queryOptions({ connector_type: type }, { refetchInterval: 15_000 }),
  );
  const mayCreate = usePermission(`${type}s.create`);
  const create = mayCreate && (
    <Button component={Link} href={`/console/${type}s/new`} leftSection={<Icon name="add" size={16} />}>
      New {type}
    </Button>
  );
  return (
    <Page title={title} lead={lead} actions={create}>
      <QueryView query={connectors}>
        {(list) =>
          list.length === 0 ? (
            <Empty icon={type} title={`No ${type}s yet`}>
              <p>{help}</p>
              {create}
            </Empty>
          ) : (
            <ul className="connector-cards">
              {list.map((connector) => (
                <li key={connector.id}>
                  <Link href={`/console/${type}s/${connector.id}`} className="card connector-card">
                    <ConnectorMark
                      connector={{
                        name: connector.connector_name,
                        display_name: connector.connector_display_name,
                        icon_url: null,
                      }}
                    />
                    <span className="grow">
                      <b>{connector.name}</b>
                      <span className="dimmed">{connector.connector_display_name}</span>
                    </span>
                    <Status value={connector.status} />
                    <span className="dimmed connector-facts">
                      <span>{pluralize(connector.connections_count, 'connection')}</span>
                      {type === 'source' && <span>{pluralize(connector.streams_count, 'stream')}</span>}
                      <span>
                        Tested <RelativeTime at={connector.last_tested_at} never="never" />
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
