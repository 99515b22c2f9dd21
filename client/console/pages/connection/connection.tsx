import { Button, Menu, Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useLocation, useParams, useSearchParams } from 'wouter';
import { stateOf } from '../../../connection-filters.ts';
import { client, trpc } from '../../api.ts';
import { ViewAsCode } from '../../as-code/view-as-code.tsx';
import { usePermission } from '../../current-user.ts';
import { Freshness, RelativeTime } from '../../components/relative-time.tsx';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import { statusChange } from '../connections/status-change.ts';
import { RunsTab } from './runs-tab.tsx';
import { SchemaChangesTab } from './schema-changes-tab.tsx';
import { SettingsTab } from './settings-tab.tsx';
import { DisabledBanner } from './disabled-banner.tsx';
import { SkippedBanner } from './skipped-banner.tsx';
import { StreamsTab } from './streams-tab.tsx';
import type { Connection } from '../../answers.ts';

/** One connection: runs, streams, schema changes and settings. The tab is in the address. */
export default function ConnectionPage() {
  const { connection_id = '' } = useParams();
  const connection = useQuery(trpc.connections.get.queryOptions({ connection_id }, { refetchInterval: 5_000 }));
  return <QueryView query={connection}>{(data) => <Tabbed connection={data} />}</QueryView>;
}

function Tabbed({ connection }: { connection: Connection }) {
  const [search, setSearch] = useSearchParams();
  const { id, source, destination, schedule, next_run_at } = connection;
  const changed = connection.schema_change_status !== 'no_change';
  return (
    <Page
      title={connection.name}
      mark={<Status value={stateOf(connection)} />}
      back={{ href: '/console/connections', label: 'Connections' }}
      trail={trailOf(connection.folder)}
      lead={
        <>
          <Link href={`/console/sources/${source.id}`}>{source.name}</Link> <Icon name="arrow" size={12} />{' '}
          <Link href={`/console/destinations/${destination.id}`}>{destination.name}</Link> · {schedule.description}
          {next_run_at && (
            <>
              , next <RelativeTime at={next_run_at} />
            </>
          )}
          <Behind connection={connection} />
        </>
      }
      actions={<Actions connection={connection} />}
    >
      <DisabledBanner connection={connection} isReviewing={search.get('tab') === 'changes'} />
      <SkippedBanner connection={connection} />
      <Tabs
        value={search.get('tab') ?? 'runs'}
        onChange={(tab) => setSearch(tab === null || tab === 'runs' ? {} : { tab }, { replace: true })}
        key={id}
      >
        <Tabs.List>
          <Tabs.Tab value="runs">Runs</Tabs.Tab>
          <Tabs.Tab value="streams">Streams</Tabs.Tab>
          <Tabs.Tab value="changes" rightSection={changed && <Status value="warning" label="Review" />}>
            Schema changes
          </Tabs.Tab>
          <Tabs.Tab value="settings">Settings</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="runs">
          <RunsTab connection={connection} />
        </Tabs.Panel>
        <Tabs.Panel value="streams">
          <StreamsTab connection={connection} />
        </Tabs.Panel>
        <Tabs.Panel value="changes">
          <SchemaChangesTab connection={connection} />
        </Tabs.Panel>
        <Tabs.Panel value="settings">
          <SettingsTab connection={connection} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

/** The folder of a connection and those above it, as links to what is in them. */
const trailOf = (folder: string | null) =>
  (folder?.split('/') ?? []).map((label, at, levels) => ({
    label,
    href: `/console/connections?${new URLSearchParams({ folder: levels.slice(0, at + 1).join('/') }).toString()}`,
  }));

/** The table that is the furthest behind. */
function Behind({ connection: { streams } }: { connection: Connection }) {
  const loaded = streams.filter(({ selected, fresh_at }) => selected && fresh_at !== null);
  const [last] = loaded.toSorted((a, b) => Date.parse(a.fresh_at!) - Date.parse(b.fresh_at!));
  if (!last) return null;
  return (
    <>
      {' '}
      · {last.name}: <Freshness at={last.fresh_at} />
    </>
  );
}

/** Whether failures of this connection are sent to where the account's are. */
function Bell({ connection: { id, notify_on_failure: isOn } }: { connection: Connection }) {
  const may = usePermission('connections.update');
  const update = useAction(trpc.connections.update, {
    done: isOn ? 'Failures of this connection are not sent' : 'Failures of this connection are sent',
    failed: 'Connection not updated',
    undo: {
      input: async ({ connection_id }) => {
        const { revision, notify_on_failure } = await client.connections.get.query({ connection_id });
        return { connection_id, revision, notify_on_failure };
      },
    },
  });
  return (
    <Button
      variant="default"
      px="xs"
      aria-label="Notify on failure"
      aria-pressed={isOn}
      title={isOn ? 'Failures are sent. Select to stop' : 'Failures are not sent. Select to send them'}
      disabled={!may}
      loading={update.isPending}
      onClick={() => update.mutate({ connection_id: id, notify_on_failure: !isOn })}
    >
      <Icon name={isOn ? 'bell' : 'bellOff'} />
    </Button>
  );
}

function Actions({ connection }: { connection: Connection }) {
  const { id, status, active_run_id } = connection;
  const mayRun = usePermission('connections.run');
  const mayUpdate = usePermission('connections.update');
  const [, navigate] = useLocation();
  const to = (run: string) => navigate(`/console/connections/${id}/runs/${run}`);
  const run = useAction(trpc.runs.run, {
    done: 'Run started',
    failed: 'Run not started',
    after: (started) => started !== null && to(started),
  });
  const update = useAction(trpc.connections.update, statusChange(connection));
  const refreshSchema = useAction(trpc.connections.updateCatalog, {
    done: 'Schema refresh started',
    failed: 'Schema not refreshed',
  });
  return (
    <>
      {active_run_id === null ? (
        <Button
          leftSection={<Icon name="play" size={16} />}
          disabled={!mayRun}
          loading={run.isPending}
          onClick={() => run.mutate({ connection_id: id })}
        >
          Run now
        </Button>
      ) : (
        <Button leftSection={<Icon name="clock" size={16} />} onClick={() => to(active_run_id)}>
          View run
        </Button>
      )}
      <Button
        component={Link}
        href={`/console/connections/${id}/plan`}
        variant="default"
        leftSection={<Icon name="calendar" size={16} />}
      >
        Custom run
      </Button>
      <ViewAsCode kind="connection" item={connection} />
      <Bell connection={connection} />
      <Menu position="bottom-end" shadow="md">
        <Menu.Target>
          <Button variant="default" aria-label="More actions" px="xs">
            <Icon name="more" />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<Icon name={status === 'active' ? 'pause' : 'play'} size={16} />}
            disabled={!mayUpdate || status === 'locked'}
            onClick={() => update.mutate({ connection_id: id, status: status === 'active' ? 'paused' : 'active' })}
          >
            {status === 'active' ? 'Pause' : 'Resume'}
          </Menu.Item>
          <Menu.Item
            leftSection={<Icon name="refresh" size={16} />}
            disabled={!mayUpdate}
            onClick={() => refreshSchema.mutate({ connection_id: id })}
          >
            Refresh schema
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  );
}
