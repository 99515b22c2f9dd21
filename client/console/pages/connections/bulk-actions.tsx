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
  const update = async (connection_id: string, change: (tags: string[]) => Change) => {
    // Others may have changed it since the list was read.
    const before = await client.connections.get.query({ connection_id });
    const sent = { connection_id, revision: before.revision, ...change(before.tags) };
    const { revision } = await client.connections.update.mutate(sent);
    if (revision === before.revision) return null;
    const former =
      'tags' in sent ? { tags: before.tags } : isSettable(before.status) ? { status: before.status } : null;
    return former && (() => client.connections.update.mutate({ connection_id, revision, ...former }));
  };
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
      <Button
        size="xs"
        variant="default"
        disabled={!mayUpdate}
        onClick={() => perform('paused', (one) => update(one, () => ({ status: 'paused' })))}
      >
        Pause
      </Button>
      <Button
        size="xs"
        variant="default"
        disabled={!mayUpdate}
        onClick={() => perform('resumed', (one) => update(one, () => ({ status: 'active' })))}
      >
        Resume
      </Button>
      <TagDialog
        disabled={!mayUpdate}
        add={(tags) => perform('tagged', (one) => update(one, (own) => ({ tags: [...new Set([...own, ...tags])] })))}
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

type Settable = 'active' | 'paused';
type Change = { status: Settable } | { tags: string[] };
const isSettable = (status: string): status is Settable => status === 'active' || status === 'paused';

type Undo = () => Promise<unknown>;
/** Performs an action on a connection. If it returns a function, that one undoes it. */
type Each = (connection_id: string) => Promise<unknown>;
type Failed = { name: string; error: unknown }[];

/** Performs one action on each connection, and reports how many accepted it and the first failure. */
function useEach(selected: Summary[], clear: () => void) {
  const queryClient = useQueryClient();
  const [isPending, setPending] = useState(false);
  const refetch = () => queryClient.invalidateQueries(trpc.connections.pathFilter());
  const perform = async (done: string, action: Each) => {
    setPending(true);
    const failures: Failed = [];
    const undos: { name: string; undo: Undo }[] = [];
    for (const { id, name } of selected) {
      try {
        const undo = await action(id);
        if (typeof undo === 'function') undos.push({ name, undo: undo as Undo });
      } catch (error) {
        failures.push({ name, error });
      }
    }
    setPending(false);
    const succeeded = selected.length - failures.length;
    const title = `${pluralize(succeeded, 'connection')} ${done}`;
    const undo = async () => {
      await undoEach(undos, title);
      await refetch();
    };
    if (succeeded > 0) notify(title, undos.length === 0 ? {} : { undo: () => void undo() });
    notifyFirst(failures, `of ${selected.length} not ${done}`);
    if (failures.length === 0) clear();
    await refetch();
  };
  return { isPending, perform: (done: string, action: Each) => void perform(done, action) };
}

/** Those that have changed since stay as they are. */
async function undoEach(undos: { name: string; undo: Undo }[], title: string): Promise<void> {
  const failures: Failed = [];
  for (const { name, undo } of undos) await undo().catch((error: unknown) => failures.push({ name, error }));
  if (failures.length < undos.length) notify(`Undone: ${title}`);
  notifyFirst(failures, `of ${undos.length} not undone`);
}

const notifyFirst = (failures: Failed, what: string): void => {
  const [first] = failures;
  if (first) notifyFailure(`${failures.length} ${what}: ${first.name}`, first.error);
};

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
