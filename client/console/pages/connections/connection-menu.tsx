import { ActionIcon, Menu } from '@mantine/core';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { Icon } from '../../components/icon.tsx';
import { useAction } from '../../use-action.ts';
import type { Summary } from './connection-list.tsx';
import { statusChange } from './status-change.ts';

const REFRESHED = [trpc.connections.summaries, trpc.connections.get, trpc.runs.list, trpc.overview.recentRuns];

/** Actions for a connection in a list. */
export const ConnectionMenu = ({ connection }: { connection: Summary }) => (
  <Menu position="bottom-end" shadow="md">
    <Menu.Target>
      <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Actions for ${connection.name}`}>
        <Icon name="more" />
      </ActionIcon>
    </Menu.Target>
    <Menu.Dropdown>
      <Items connection={connection} />
    </Menu.Dropdown>
  </Menu>
);

/** A component of its own, so that its hooks run only while the menu is open. */
function Items({ connection }: { connection: Summary }) {
  const { id, name, status, active_run_id } = connection;
  const mayRun = usePermission('connections.run');
  const mayUpdate = usePermission('connections.update');
  const run = useAction(trpc.runs.run, {
    done: `Run of ${name} started`,
    failed: 'Run not started',
    refresh: REFRESHED,
  });
  const stop = useAction(trpc.runs.stop, { done: `Stopping ${name}`, failed: 'Run not stopped', refresh: REFRESHED });
  const update = useAction(trpc.connections.update, { ...statusChange(connection), refresh: REFRESHED });
  const isLocked = status === 'locked';
  return (
    <>
      {active_run_id === null ? (
        <Menu.Item
          leftSection={<Icon name="play" size={16} />}
          disabled={!mayRun}
          onClick={() => run.mutate({ connection_id: id })}
        >
          Run now
        </Menu.Item>
      ) : (
        <Menu.Item
          leftSection={<Icon name="stop" size={16} />}
          disabled={!mayRun}
          onClick={() => stop.mutate({ connection_run_id: active_run_id })}
        >
          Stop run
        </Menu.Item>
      )}
      {status === 'active' ? (
        <Menu.Item
          leftSection={<Icon name="pause" size={16} />}
          disabled={!mayUpdate}
          onClick={() => update.mutate({ connection_id: id, status: 'paused' })}
        >
          Pause
        </Menu.Item>
      ) : (
        <Menu.Item
          leftSection={<Icon name="play" size={16} />}
          disabled={!mayUpdate || isLocked}
          onClick={() => update.mutate({ connection_id: id, status: 'active' })}
        >
          Resume
        </Menu.Item>
      )}
    </>
  );
}
