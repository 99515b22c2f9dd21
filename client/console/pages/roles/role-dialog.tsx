import { Button, Checkbox, Modal, Textarea, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { trpc } from '../../api.ts';
import { type Permission, useMe } from '../../current-user.ts';
import { Failure } from '../../components/failure.tsx';
import { wordsOf } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import type { Role } from './roles.tsx';

const TITLES: Record<string, string> = { cases: 'Cases', cross_account: 'Other accounts', metadata: 'Metadata' };

/** Makes a role or changes one. Nobody grants what he may not do himself: the rest cannot be ticked. */
export function RoleDialog({ role, onClose }: { role: Role | null; onClose: () => void }) {
  const [name, setName] = useState(role?.name ?? '');
  const [description, setDescription] = useState(role?.description ?? '');
  const [permissions, setPermissions] = useState<Permission[]>(role?.permissions ?? []);
  const telling = { failed: null, refresh: [trpc.roles.list, trpc.users.me], after: onClose } as const;
  const create = useAction(trpc.roles.create, { done: `The role ${name} was made`, ...telling });
  const update = useAction(trpc.roles.update, { done: `The role ${name} was changed`, ...telling });
  const order = role ? update : create;
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
        {order.error && <Failure title="The role was not saved" error={order.error} />}
        <div className="form-foot">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={order.isPending} disabled={permissions.length === 0}>
            Save
          </Button>
        </div>
      </form>
    </Modal>
  );
}

interface BoxesProps {
  /** What the role has as yet: shown although the user may not grant it. */
  held: Permission[];
  value: Permission[];
  onChange: (permissions: Permission[]) => void;
}

function PermissionBoxes({ held, value, onChange }: BoxesProps) {
  const mine = useMe().permissions;
  const shown = [...new Set([...mine, ...held])];
  const groups = Map.groupBy(shown, (permission) => permission.split('.')[0]!);
  return (
    <Checkbox.Group
      label="Permissions"
      description="Only what you may do yourself can be granted"
      value={value}
      onChange={onChange}
    >
      <div className="permission-groups">
        {[...groups].map(([group, permissions]) => (
          <fieldset key={group} className="bare-fieldset">
            <legend className="group-name">{TITLES[group] ?? `${group[0]!.toUpperCase()}${group.slice(1)}`}</legend>
            {permissions.map((permission) => (
              <Checkbox
                key={permission}
                value={permission}
                label={wordsOf(permission.split('.')[1]!)}
                disabled={!mine.includes(permission)}
              />
            ))}
          </fieldset>
        ))}
      </div>
    </Checkbox.Group>
  );
}
