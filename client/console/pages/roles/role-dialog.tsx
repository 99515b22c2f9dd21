import { Button, Checkbox, Modal, Textarea, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { client, trpc } from '../../api.ts';
import { type Permission, useCurrentUser } from '../../current-user.ts';
import { Failure } from '../../components/failure.tsx';
import { labelOf } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import type { Role } from '../../answers.ts';

const TITLES: Record<string, string> = { cross_account: 'Other accounts' };

const settingsOf = ({ name, description, permissions }: Pick<Role, 'name' | 'description' | 'permissions'>) => ({
  name,
  description,
  permissions,
});

/** Creates or edits a role. Users can only grant permissions that they have, so the others are disabled. */
export function RoleDialog({ role, onClose }: { role: Role | null; onClose: () => void }) {
  const [name, setName] = useState(role?.name ?? '');
  const [description, setDescription] = useState(role?.description ?? '');
  const [permissions, setPermissions] = useState<Permission[]>(role?.permissions ?? []);
  const options = { failed: null, refresh: [trpc.roles.list, trpc.users.me], after: onClose } as const;
  const create = useAction(trpc.roles.create, { done: `Role ${name} created`, ...options });
  const update = useAction(trpc.roles.update, {
    done: `Role ${name} updated`,
    ...options,
    undo: {
      input: async ({ role_id }) => ({ role_id, ...settingsOf(await client.roles.get.query({ role_id })) }),
      isCurrent: async (saved) => {
        const now = await client.roles.get.query({ role_id: saved.id });
        return JSON.stringify(settingsOf(now)) === JSON.stringify(settingsOf(saved));
      },
    },
  });
  const action = role ? update : create;
  const save = (event: FormEvent) => {
    event.preventDefault();
    const settings = { name, description: description || null, permissions };
    if (role) update.mutate({ role_id: role.id, ...settings });
    else create.mutate(settings);
  };
  return (
    <Modal opened onClose={onClose} title={role ? `Edit ${role.name}` : 'New role'} size="lg">
      <form className="stack" onSubmit={save}>
        <TextInput
          label="Name"
          required
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Textarea
          label="Description"
          autosize
          value={description}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        <PermissionBoxes held={role?.permissions ?? []} value={permissions} onChange={setPermissions} />
        {action.error && <Failure title="Role not saved" error={action.error} />}
        <div className="form-foot">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={action.isPending} disabled={permissions.length === 0}>
            {role ? 'Save changes' : 'Create role'}
          </Button>
        </div>
      </form>
    </Modal>
  );
}

interface BoxesProps {
  /** Permissions that the role has: shown even if the user cannot grant them. */
  held: Permission[];
  value: Permission[];
  onChange: (permissions: Permission[]) => void;
}

function PermissionBoxes({ held, value, onChange }: BoxesProps) {
  const own = useCurrentUser().permissions;
  const shown = [...new Set([...own, ...held])];
  const groups = Map.groupBy(shown, (permission) => permission.split('.')[0]!);
  return (
    <Checkbox.Group
      label="Permissions"
      description="You can only grant permissions that you have"
      value={value}
      onChange={onChange}
    >
      <div className="permission-groups">
        {[...groups].map(([group, permissions]) => (
          <fieldset key={group} className="bare-fieldset">
            <legend className="group-name">{TITLES[group] ?? labelOf(group)}</legend>
            {permissions.map((permission) => (
              <Checkbox
                key={permission}
                value={permission}
                label={labelOf(permission.split('.')[1]!)}
                disabled={!own.includes(permission)}
              />
            ))}
          </fieldset>
        ))}
      </div>
    </Checkbox.Group>
  );
}
