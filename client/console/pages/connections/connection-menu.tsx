import { ActionIcon, Menu } from '@mantine/core';
import { useState } from 'react';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { Icon } from '../../components/icon.tsx';
import { StopQuestion } from '../../components/confirm.tsx';
import { useAction } from '../../use-action.ts';
import { statusChange } from './status-change.ts';
import type { Summary } from '../../answers.ts';

const REFRESHED = [trpc.connections.summaries, trpc.connections.get, trpc.runs.list, trpc.overview.recentRuns];

/** Actions for a connection in a list. */
export function ConnectionMenu({ connection }: { connection: Summary }) {
  // The run that is about to be stopped: the question outlasts the menu.
  const [stopping, setStopping] = useState<string | null>(null);
  return (
    <>
      <Menu position="bottom-end" shadow="md">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Actions for ${connection.name}`}>
            <Icon name="more" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Items connection={connection} stop={setStopping} />
        </Menu.Dropdown>
      </Menu>
      {stopping !== null && (
        <Stopping name={connection.name} connection_run_id={stopping} close={() => setStopping(null)} />
      )}
    </>
  );
}

interface StoppingProps {
  name: string;
  connection_run_id: string;
  close: () => void;
}

function Stopping({ name, connection_run_id, close }: StoppingProps) {
  const stop = useAction(trpc.runs.stop, { done: `Stopping ${name}`, failed: 'Run not stopped', refresh: REFRESHED });
  return (
    <StopQuestion
      title={`Stop the run of “${name}”?`}
      onConfirm={() => stop.mutate({ connection_run_id })}
      onClose={close}
    />
  );
}

/** A component of its own, so that its hooks run only while the menu is open. */
function Items({ connection, stop }: { connection: Summary; stop: (connection_run_id: string) => void }) {
  const { id, name, status, active_run_id } = connection;
  const mayRun = usePermission('connections.run');
  const mayUpdate = usePermission('connections.update');
  const run = useAction(trpc.runs.run, {
    done: `Run of ${name} started`,
    failed: 'Run not started',
    refresh: REFRESHED,
  });
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
        <Menu.Item leftSection={<Icon name="stop" size={16} />} disabled={!mayRun} onClick={() => stop(active_run_id)}>
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
