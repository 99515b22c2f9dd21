import { ActionIcon, Menu } from '@mantine/core';
import { trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { Icon } from '../../components/icon.tsx';
import { useAction } from '../../use-action.ts';
import type { Summary } from './connection-list.tsx';

const REFRESHED = [trpc.connections.summaries, trpc.connections.get, trpc.runs.list, trpc.overview.recentRuns];

/** What can be done with a connection without opening it. */
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

/** By itself, as it is there only while the menu is open. */
function Items({ connection }: { connection: Summary }) {
  const { id, name, status, active_run_id } = connection;
  const mayRun = useMay('connections.run');
  const mayUpdate = useMay('connections.update');
  const run = useAction(trpc.runs.run, { done: `${name} runs`, failed: `${name} was not started`, refresh: REFRESHED });
  const stop = useAction(trpc.runs.stop, { done: `${name} is asked to stop`, refresh: REFRESHED });
  const update = useAction(trpc.connections.update, { refresh: REFRESHED });
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
          Stop the run
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
