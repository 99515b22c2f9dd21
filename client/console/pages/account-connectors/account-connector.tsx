import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useLocation, useParams } from 'wouter';
import { trpc } from '../../api.ts';
import { ViewAsCode } from '../../as-code/view-as-code.tsx';
import { usePermission } from '../../current-user.ts';
import { Confirm } from '../../components/confirm.tsx';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page, Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { hasTunnelProblem, TunnelState } from '../../ssh-tunnel/tunnel-state.tsx';
import { useAction } from '../../use-action.ts';
import { Checks } from './checks.tsx';
import { ParametersSection } from './parameters-section.tsx';
import { TestButton } from './test-button.tsx';
import { UpdateConnector } from './update-connector.tsx';
import { WebhookSection } from './webhook-section.tsx';
import type { AccountConnector } from '../../answers.ts';

/** One source or destination: its last test, its connections and its parameters. */
export default function AccountConnectorPage() {
  const { account_connector_id = '' } = useParams();
  const [location] = useLocation();
  const connector_type = location.startsWith('/console/sources') ? 'source' : 'destination';
  return <Loader key={account_connector_id} {...{ connector_type, account_connector_id }} />;
}

function Loader(key: { connector_type: 'source' | 'destination'; account_connector_id: string }) {
  const connector = useQuery(trpc.account_connectors.get.queryOptions(key));
  return <QueryView query={connector}>{(data) => <Whole connector={data} />}</QueryView>;
}

function Whole({ connector }: { connector: AccountConnector }) {
  const { connector_type, name, status, status_message } = connector;
  const mayUpdate = usePermission(`${connector_type}s.update`);
  const entry = useQuery(
    trpc.connectors.get.queryOptions({
      connector_type,
      connector_name: connector.connector_name,
      connector_id: connector.connector_id,
    }),
  );
  return (
    <Page
      title={name}
      mark={<Status value={status} />}
      back={{ href: `/console/${connector_type}s`, label: connector_type === 'source' ? 'Sources' : 'Destinations' }}
      lead={`${connector.connector_display_name} ${connector.connector_version}${status_message && !hasTunnelProblem(connector) ? ` · ${status_message}` : ''}`}
      actions={
        <>
          {connector_type === 'source' && (
            <Button
              component={Link}
              href={`/console/sources/${connector.id}/catalog`}
              variant="default"
              leftSection={<Icon name="search" size={16} />}
            >
              Browse catalog
            </Button>
          )}
          <UpdateConnector connector_name={connector.connector_name} />
          <ViewAsCode kind="connector" item={connector} />
          <TestButton connector={connector} />
        </>
      }
    >
      <TunnelState connector={connector} disabled={!mayUpdate} />
      {mayUpdate && entry.data?.capabilities.webhooks && <WebhookSection account_connector_id={connector.id} />}
      <div className="columns">
        <Checks connector={connector} />
        <UsedBy connector={connector} />
      </div>
      <QueryView query={entry}>{(known) => <ParametersSection connector={connector} entry={known} />}</QueryView>
      <Deletion connector={connector} />
    </Page>
  );
}

function UsedBy({ connector }: { connector: AccountConnector }) {
  const all = useQuery(trpc.connections.summaries.queryOptions({}));
  const side = connector.connector_type;
  const connections = (all.data ?? []).filter((connection) => connection[side].id === connector.id);
  return (
    <Section title="Used by" lead={pluralize(connector.connections_count, 'connection')}>
      <ul className="lines">
        {connections.slice(0, 8).map(({ id, name, health, status }) => (
          <li key={id}>
            <Link href={`/console/connections/${id}`} className="grow" title={name}>
              {name}
            </Link>
            <Status value={status === 'active' ? health : status} />
          </li>
        ))}
      </ul>
      {connections.length > 8 && <p className="dimmed">And {connections.length - 8} more</p>}
    </Section>
  );
}

function Deletion({ connector }: { connector: AccountConnector }) {
  const { id, connector_type, name, connections_count } = connector;
  const mayDelete = usePermission(`${connector_type}s.delete`);
  const [, navigate] = useLocation();
  const remove = useAction(trpc.account_connectors.delete, {
    done: `${name} deleted`,
    failed: `${name} not deleted`,
    refresh: [trpc.account_connectors.list],
    after: () => navigate(`/console/${connector_type}s`),
  });
  const isUsed = connections_count > 0;
  return (
    <Section
      title="Delete"
      lead={
        isUsed
          ? `Delete the connections that use this ${connector_type} first.`
          : 'Its credentials are deleted as well.'
      }
    >
      <Confirm
        title={`Delete “${name}”?`}
        action={`Delete ${connector_type}`}
        onConfirm={() => remove.mutate({ account_connector_id: id })}
        trigger={(open) => (
          <Button color="red" variant="light" disabled={!mayDelete || isUsed} loading={remove.isPending} onClick={open}>
            Delete {connector_type}
          </Button>
        )}
      >
        This permanently deletes its parameters and credentials.
      </Confirm>
    </Section>
  );
}
