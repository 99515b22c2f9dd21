import { Button, Modal, TagsInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { client, type RouterOutputs, trpc } from '../../api.ts';
import { Confirm } from '../../components/confirm.tsx';
import { FolderField } from './folder-field.tsx';
import { pluralize } from '../../components/format.ts';
import { notify, notifyFailure } from '../../components/notices.tsx';
import { usePermission } from '../../current-user.ts';
import { problemOf } from '../../refused-field.ts';
import type { Summary } from '../../answers.ts';

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
    const former = formerOf(before, change(before.tags));
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
        onClick={() => void perform('started', (connection_id) => client.runs.run.mutate({ connection_id }))}
      >
        Run
      </Button>
      <Button
        size="xs"
        variant="default"
        disabled={!mayUpdate}
        onClick={() => void perform('paused', (one) => update(one, () => ({ status: 'paused' })))}
      >
        Pause
      </Button>
      <Button
        size="xs"
        variant="default"
        disabled={!mayUpdate}
        onClick={() => void perform('resumed', (one) => update(one, () => ({ status: 'active' })))}
      >
        Resume
      </Button>
      <TagDialog
        disabled={!mayUpdate}
        add={(tags) =>
          void perform('tagged', (one) => update(one, (own) => ({ tags: [...new Set([...own, ...tags])] })))
        }
      />
      <FolderDialog
        disabled={!mayUpdate}
        isPending={isPending}
        move={(folder) => perform('moved', (one) => update(one, () => ({ folder })), { field: 'folder' })}
      />
      <Confirm
        title={`Delete ${pluralize(selected.length, 'connection')}?`}
        action="Delete connections"
        onConfirm={() =>
          void perform('deleted', (connection_id) => client.connections.delete.mutate({ connection_id }))
        }
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

type Connection = RouterOutputs['connections']['get'];
type Settable = 'active' | 'paused';
type Change = { status: Settable } | { tags: string[] } | { folder: string | null };
const isSettable = (status: string): status is Settable => status === 'active' || status === 'paused';

/** What undoes a change; null if only the service sets such a status. */
function formerOf(
  { tags, folder, status }: Pick<Connection, 'tags' | 'folder' | 'status'>,
  change: Change,
): Change | null {
  if ('tags' in change) return { tags };
  if ('folder' in change) return { folder };
  return isSettable(status) ? { status } : null;
}

type Undo = () => Promise<unknown>;
/** Performs an action on a connection. If it returns a function, that one undoes it. */
type Each = (connection_id: string) => Promise<unknown>;
type Failed = { name: string; error: unknown }[];

/**
 * Performs one action on each connection, and reports how many accepted it and the first failure. If the service refuses
 * the value of `field`, which is the same for all, it stops there and returns the error, for the form to show.
 */
function useEach(selected: Summary[], clear: () => void) {
  const queryClient = useQueryClient();
  const [isPending, setPending] = useState(false);
  const refetch = () => queryClient.invalidateQueries(trpc.connections.pathFilter());
  const perform = async (done: string, action: Each, { field }: { field?: string } = {}) => {
    setPending(true);
    const failures: Failed = [];
    const undos: { name: string; undo: Undo }[] = [];
    for (const { id, name } of selected) {
      try {
        const undo = await action(id);
        if (typeof undo === 'function') undos.push({ name, undo: undo as Undo });
      } catch (error) {
        if (field !== undefined && problemOf(error, field) !== null) {
          setPending(false);
          return error;
        }
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
    return null;
  };
  return { isPending, perform };
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

interface FolderDialogProps {
  disabled: boolean;
  isPending: boolean;
  /** Returns the error if the service refuses the folder. */
  move: (folder: string | null) => Promise<unknown>;
}

function FolderDialog({ disabled, isPending, move }: FolderDialogProps) {
  const [isOpen, setOpen] = useState(false);
  const [folder, setFolder] = useState('');
  const [refused, setRefused] = useState<unknown>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const error = await move(folder.trim() || null);
    setRefused(error);
    if (error === null) setOpen(false);
  };
  return (
    <>
      <Button size="xs" variant="default" disabled={disabled} onClick={() => setOpen(true)}>
        Move to folder
      </Button>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title="Move to folder">
        <form className="stack" onSubmit={(event) => void submit(event)}>
          <FolderField
            value={folder}
            onChange={setFolder}
            description="Leave empty for no folder"
            problem={problemOf(refused, 'folder')}
          />
          <div className="form-foot">
            <Button variant="default" onClick={() => setOpen(false)}>
              Cancel
            </Button>
            <Button type="submit" loading={isPending}>
              Move
            </Button>
          </div>
        </form>
      </Modal>
    </>
  );
}
