import { ActionIcon, Button, Menu, Modal } from '@mantine/core';
import { useState } from 'react';
import { trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { Failure } from '../../components/failure.tsx';
import { Icon } from '../../components/icon.tsx';
import { useAction } from '../../use-action.ts';
import { InviteLink } from './invite-link.tsx';
import { RolesField } from './roles-field.tsx';
import type { User } from './users.tsx';

type Dialog = 'roles' | 'remove' | 'invitation' | null;

/** What can be done with a user. The service keeps the last administrator, and says so. */
export function UserMenu({ user }: { user: User }) {
  const mayManage = useMay('users.manage');
  const [dialog, setDialog] = useState<Dialog>(null);
  const close = () => setDialog(null);
  const update = useAction(trpc.users.update, {
    failed: `${user.full_name} was not changed`,
    refresh: [trpc.users.list],
  });
  const invite = useAction(trpc.users.invite, {
    failed: 'No invitation was made',
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
            Change roles
          </Menu.Item>
          {user.status === 'invited' && (
            <Menu.Item
              leftSection={<Icon name="copy" size={16} />}
              disabled={!mayManage}
              onClick={() => invite.mutate({ user_id: user.id })}
            >
              Make a new invitation
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
            onClick={() => setDialog('remove')}
          >
            Remove
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {dialog === 'roles' && <RolesDialog user={user} onClose={close} />}
      {dialog === 'remove' && <RemoveDialog user={user} onClose={close} />}
      {dialog === 'invitation' && invite.data && (
        <Modal opened onClose={close} title={`A new invitation for ${user.full_name}`}>
          <InviteLink link={invite.data.invite_link} onClose={close} />
        </Modal>
      )}
    </>
  );
}

function RolesDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const [role_ids, setRoles] = useState(user.roles.map(({ id }) => id));
  const update = useAction(trpc.users.update, {
    done: `The roles of ${user.full_name} were changed`,
    failed: null,
    refresh: [trpc.users.list, trpc.roles.list, trpc.users.me],
    after: onClose,
  });
  return (
    <Modal opened onClose={onClose} title={`Roles of ${user.full_name}`}>
      <div className="stack">
        <RolesField
          value={role_ids}
          onChange={setRoles}
          description="What all of them together allow, from the next request on"
        />
        {update.error && <Failure title="The roles were not changed" error={update.error} />}
        <div className="form-foot">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button loading={update.isPending} onClick={() => update.mutate({ user_id: user.id, role_ids })}>
            Save
          </Button>
        </div>
      </div>
    </Modal>
  );
}

function RemoveDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const remove = useAction(trpc.users.delete, {
    done: `${user.full_name} was removed`,
    failed: null,
    refresh: [trpc.users.list, trpc.roles.list],
    after: onClose,
  });
  return (
    <Modal opened onClose={onClose} title={`Remove ${user.full_name}?`}>
      <div className="stack">
        <p>All API keys of {user.email} stop working at once. What the user made stays.</p>
        {remove.error && <Failure title="The user was not removed" error={remove.error} />}
        <div className="form-foot">
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button color="red" loading={remove.isPending} onClick={() => remove.mutate({ user_id: user.id })}>
            Remove
          </Button>
        </div>
      </div>
    </Modal>
  );
}
