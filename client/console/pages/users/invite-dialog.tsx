import { Button, Modal, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { useAction } from '../../use-action.ts';
import { InviteLink } from './invite-link.tsx';
import { RolesField } from './roles-field.tsx';

/** Creates a user, then shows the invitation link, once. */
export function InviteDialog({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState('');
  const [full_name, setName] = useState('');
  const [role_ids, setRoles] = useState<string[]>([]);
  const create = useAction(trpc.users.create, { failed: null, refresh: [trpc.users.list, trpc.roles.list] });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // Without roles, the service assigns the role Viewer.
    create.mutate({ email, full_name, ...(role_ids.length > 0 && { role_ids }) });
  };
  const link = create.data?.invite_link;
  return (
    <Modal opened onClose={onClose} title={link ? `${full_name} has been invited` : 'Invite user'}>
      {link ? (
        <InviteLink link={link} onClose={onClose} />
      ) : (
        <form className="stack" onSubmit={submit}>
          <TextInput
            label="Email"
            type="email"
            required
            data-autofocus
            autoComplete="off"
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
          <TextInput
            label="Name"
            required
            autoComplete="off"
            value={full_name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <RolesField value={role_ids} onChange={setRoles} description="Leave empty for Viewer, which is read-only" />
          {create.error && <Failure title="User not invited" error={create.error} />}
          <div className="form-foot">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isPending}>
              Invite
            </Button>
          </div>
        </form>
      )}
    </Modal>
  );
}
