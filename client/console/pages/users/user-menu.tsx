import { ActionIcon, Button, Menu, Modal } from '@mantine/core';
import { useState } from 'react';
import { client, type RouterOutputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { QuestionDialog } from '../../components/confirm.tsx';
import { Failure } from '../../components/failure.tsx';
import { Icon } from '../../components/icon.tsx';
import { useAction } from '../../use-action.ts';
import { InviteLink } from './invite-link.tsx';
import { RolesField } from './roles-field.tsx';
import type { User } from '../../answers.ts';

type Dialog = 'roles' | 'delete' | 'invitation' | null;

/** Actions for a user. The service refuses to disable or delete the last administrator. */
export function UserMenu({ user }: { user: User }) {
  const mayManage = usePermission('users.manage');
  const [dialog, setDialog] = useState<Dialog>(null);
  const close = () => setDialog(null);
  const update = useAction(trpc.users.update, {
    done: (saved) => `${user.full_name} ${saved.is_active ? 'enabled' : 'disabled'}`,
    failed: `${user.full_name} not updated`,
    refresh: [trpc.users.list],
    undo: {
      input: async ({ user_id, is_active: wanted }) => {
        const { is_active } = await client.users.get.query({ user_id });
        return is_active === wanted ? null : { user_id, is_active };
      },
      isCurrent,
    },
  });
  const invite = useAction(trpc.users.invite, {
    failed: 'Invitation not created',
    after: () => setDialog('invitation'),
  });
  return (
    <>
      <Menu position="bottom-end" shadow="md" withinPortal>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Actions for ${user.full_name}`}>
            <Icon name="more" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<Icon name="role" size={16} />}
            disabled={!mayManage}
            onClick={() => setDialog('roles')}
          >
            Edit roles
          </Menu.Item>
          {user.status === 'invited' && (
            <Menu.Item
              leftSection={<Icon name="copy" size={16} />}
              disabled={!mayManage}
              onClick={() => invite.mutate({ user_id: user.id })}
            >
              Create new invitation
            </Menu.Item>
          )}
          {user.status !== 'invited' && (
            <Menu.Item
              leftSection={<Icon name={user.is_active ? 'pause' : 'play'} size={16} />}
              disabled={!mayManage || user.is_me}
              onClick={() => update.mutate({ user_id: user.id, is_active: !user.is_active })}
            >
              {user.is_active ? 'Disable' : 'Enable'}
            </Menu.Item>
          )}
          <Menu.Item
            color="red"
            leftSection={<Icon name="trash" size={16} />}
            disabled={!mayManage || user.is_me}
            onClick={() => setDialog('delete')}
          >
            Delete
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {dialog === 'roles' && <RolesDialog user={user} onClose={close} />}
      {dialog === 'delete' && <DeleteDialog user={user} onClose={close} />}
      {dialog === 'invitation' && invite.data && (
        <Modal opened onClose={close} title={`New invitation for ${user.full_name}`}>
          <InviteLink link={invite.data.invite_link} onClose={close} />
        </Modal>
      )}
    </>
  );
}

/** Whether status and roles are still those of an update. */
async function isCurrent(saved: RouterOutputs['users']['update']): Promise<boolean> {
  const now = await client.users.get.query({ user_id: saved.id });
  const rights = ({ is_active, roles }: typeof saved) =>
    JSON.stringify([is_active, roles.map(({ id }) => id).toSorted()]);
  return rights(now) === rights(saved);
}

function RolesDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const [role_ids, setRoles] = useState(user.roles.map(({ id }) => id));
  const update = useAction(trpc.users.update, {
    done: `Roles of ${user.full_name} updated`,
    failed: null,
    refresh: [trpc.users.list, trpc.roles.list, trpc.users.me],
    after: onClose,
    undo: {
      input: async ({ user_id }) => {
        const { roles } = await client.users.get.query({ user_id });
        return { user_id, role_ids: roles.map(({ id }) => id) };
      },
      isCurrent,
    },
  });
  return (
    <Modal opened onClose={onClose} title={`Roles of ${user.full_name}`}>
      <div className="stack">
        <RolesField value={role_ids} onChange={setRoles} description="Takes effect with the next request" />
        {update.error && <Failure title="Roles not updated" error={update.error} />}
        <div className="form-foot">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button loading={update.isPending} onClick={() => update.mutate({ user_id: user.id, role_ids })}>
            Save changes
          </Button>
        </div>
      </div>
    </Modal>
  );
}

function DeleteDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const remove = useAction(trpc.users.delete, {
    done: `${user.full_name} deleted`,
    failed: null,
    refresh: [trpc.users.list, trpc.roles.list],
    after: onClose,
  });
  return (
    <QuestionDialog
      title={`Delete ${user.full_name}?`}
      action="Delete user"
      running={{ isPending: remove.isPending, error: remove.error, failed: 'User not deleted' }}
      onConfirm={() => remove.mutate({ user_id: user.id })}
      onClose={onClose}
    >
      All API keys of {user.email} stop working immediately. Resources that the user created are kept.
    </QuestionDialog>
  );
}
