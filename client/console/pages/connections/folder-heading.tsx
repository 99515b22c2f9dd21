import { ActionIcon, Button, Modal } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { client, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { FolderField } from './folder-field.tsx';
import { formatCount } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { usePermission } from '../../current-user.ts';
import { problemOf } from '../../refused-field.ts';
import { useAction } from '../../use-action.ts';
import { type ListRow, NO_FOLDER } from './folder-rows.ts';

interface FolderHeadingProps {
  row: Extract<ListRow, { folder: string }>;
  isCollapsed: boolean;
  toggle: (folder: string) => void;
}

/** The heading of a folder in the list, which hides what is in it. */
export function FolderHeading({ row: { folder, name, depth, count }, isCollapsed, toggle }: FolderHeadingProps) {
  const mayUpdate = usePermission('connections.update');
  const [isOpen, setOpen] = useState(false);
  return (
    <div className="folder-heading" style={{ paddingInlineStart: `${1 + depth * 1.25}rem` }}>
      <button type="button" aria-expanded={!isCollapsed} title={folder || name} onClick={() => toggle(folder)}>
        <Icon name="down" size={14} />
        <Icon name="folder" size={16} />
        <span className="folder-name">{name}</span>
        <span className="dimmed number">{formatCount(count)}</span>
      </button>
      {folder !== NO_FOLDER && (
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={`Rename folder ${folder}`}
          disabled={!mayUpdate}
          onClick={() => setOpen(true)}
        >
          <Icon name="edit" size={16} />
        </ActionIcon>
      )}
      {isOpen && <RenameDialog folder={folder} close={() => setOpen(false)} />}
    </div>
  );
}

function RenameDialog({ folder, close }: { folder: string; close: () => void }) {
  const [to, setTo] = useState(folder);
  const move = useAction(trpc.connections.moveFolder, {
    done: 'Folder moved',
    failed: null,
    refresh: [trpc.connections.summaries, trpc.connections.get],
    after: close,
    undo: {
      // Moving back takes all of a folder, so it restores what there was only if nothing else was in there.
      input: async ({ from, to: target }) =>
        target === null || (await countIn(target)) > 0 ? null : { from: target, to: from },
      isCurrent: async ({ connections }, { to: target }) => target !== null && (await countIn(target)) === connections,
    },
  });
  const problem = problemOf(move.error, 'to');
  const save = (event: FormEvent) => {
    event.preventDefault();
    move.mutate({ from: folder, to: to.trim() || null });
  };
  return (
    <Modal opened onClose={close} title="Rename or move folder">
      <form className="stack" onSubmit={save}>
        <FolderField
          value={to}
          onChange={setTo}
          description="Folders below it move along. Leave empty to remove the folder and keep its connections"
          problem={problem}
        />
        {move.error && problem === null && <Failure title="Folder not moved" error={move.error} />}
        <div className="form-foot">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={move.isPending} disabled={to.trim() === folder}>
            Save changes
          </Button>
        </div>
      </form>
    </Modal>
  );
}

const countIn = async (folder: string): Promise<number> => (await client.connections.list.query({ folder })).length;
