import { Button, Modal, TagsInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { client, trpc } from '../../api.ts';
import { Confirm } from '../../components/confirm.tsx';
import { FolderField } from './folder-field.tsx';
import { pluralize } from '../../components/format.ts';
import { notify, notifyFailure } from '../../components/notices.tsx';
import { usePermission } from '../../current-user.ts';
import type { Summary } from './connection-list.tsx';

interface BulkActionsProps {
  selected: Summary[];
  clear: () => void;
}

/** Runs, pauses, resumes, tags, moves or deletes the selected connections, one after the other. */
export function BulkActions({ selected, clear }: BulkActionsProps) {
  const mayRun = usePermission('connections.run');
  const mayUpdate = usePermission('connections.update');
  const mayDelete = usePermission('connections.delete');
  const { isPending, perform } = useEach(selected, clear);
  const set = (status: 'active' | 'paused') => (connection_id: string) =>
    client.connections.update.mutate({ connection_id, status });
  return (
    <div className="row bulk-actions" role="group" aria-label="Actions for the selected connections">
      <span className="grow" role="status">
        {pluralize(selected.length, 'connection')} selected
      </span>
      <Button
        size="xs"
        disabled={!mayRun}
        loading={isPending}
        onClick={() => perform('started', (connection_id) => client.runs.run.mutate({ connection_id }))}
      >
        Run
      </Button>
      <Button size="xs" variant="default" disabled={!mayUpdate} onClick={() => perform('paused', set('paused'))}>
        Pause
      </Button>
      <Button size="xs" variant="default" disabled={!mayUpdate} onClick={() => perform('resumed', set('active'))}>
        Resume
      </Button>
      <TagDialog
        disabled={!mayUpdate}
        add={(tags) =>
          perform('tagged', (connection_id) => {
            const before = selected.find(({ id }) => id === connection_id)?.tags ?? [];
            return client.connections.update.mutate({ connection_id, tags: [...new Set([...before, ...tags])] });
          })
        }
      />
      <FolderDialog
        disabled={!mayUpdate}
        move={(folder) =>
          perform('moved', (connection_id) => client.connections.update.mutate({ connection_id, folder }))
        }
      />
      <Confirm
        title={`Delete ${pluralize(selected.length, 'connection')}?`}
        action="Delete connections"
        onConfirm={() => perform('deleted', (connection_id) => client.connections.delete.mutate({ connection_id }))}
        trigger={(open) => (
          <Button size="xs" variant="light" color="red" disabled={!mayDelete} onClick={open}>
            Delete
          </Button>
        )}
      >
        This stops their runs and permanently deletes their schedules, settings and cursors. Loaded rows stay in the
        destination. <b>{selected.map(({ name }) => name).join(', ')}</b>
      </Confirm>
      <Button size="xs" variant="subtle" onClick={clear}>
        Clear selection
      </Button>
    </div>
  );
}

/** Performs one action on each connection, and reports how many accepted it and the first failure. */
function useEach(selected: Summary[], clear: () => void) {
  const queryClient = useQueryClient();
  const [isPending, setPending] = useState(false);
  const perform = async (done: string, action: (id: string) => Promise<unknown>) => {
    setPending(true);
    const failures: { name: string; error: unknown }[] = [];
    for (const { id, name } of selected) await action(id).catch((error: unknown) => failures.push({ name, error }));
    setPending(false);
    const succeeded = selected.length - failures.length;
    if (succeeded > 0) notify(`${pluralize(succeeded, 'connection')} ${done}`);
    const [first] = failures;
    if (first) notifyFailure(`${failures.length} of ${selected.length} not ${done}: ${first.name}`, first.error);
    else clear();
    await queryClient.invalidateQueries(trpc.connections.pathFilter());
  };
  return { isPending, perform: (done: string, action: (id: string) => Promise<unknown>) => void perform(done, action) };
}

function TagDialog({ disabled, add }: { disabled: boolean; add: (tags: string[]) => void }) {
  const [isOpen, setOpen] = useState(false);
  const [tags, setTags] = useState<string[]>([]);
  return (
    <>
      <Button size="xs" variant="default" disabled={disabled} onClick={() => setOpen(true)}>
        Add tags
      </Button>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title="Add tags">
        <div className="stack">
          <TagsInput label="Tags" placeholder="Add tag" data-autofocus value={tags} onChange={setTags} />
          <div className="form-foot">
            <Button variant="default" onClick={() => setOpen(false)}>
              Cancel
            </Button>
            <Button
              disabled={tags.length === 0}
              onClick={() => {
                setOpen(false);
                add(tags);
              }}
            >
              Add tags
            </Button>
          </div>
        </div>
      </Modal>
    </>
  );
}

function FolderDialog({ disabled, move }: { disabled: boolean; move: (folder: string | null) => void }) {
  const [isOpen, setOpen] = useState(false);
  const [folder, setFolder] = useState('');
  return (
    <>
      <Button size="xs" variant="default" disabled={disabled} onClick={() => setOpen(true)}>
        Move to folder
      </Button>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title="Move to folder">
        <div className="stack">
          <FolderField value={folder} onChange={setFolder} description="Leave empty for no folder" />
          <div className="form-foot">
            <Button variant="default" onClick={() => setOpen(false)}>
              Cancel
            </Button>
            <Button
              onClick={() => {
                setOpen(false);
                move(folder.trim() || null);
              }}
            >
              Move
            </Button>
          </div>
        </div>
      </Modal>
    </>
  );
}
