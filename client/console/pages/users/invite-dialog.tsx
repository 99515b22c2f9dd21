import { Button, Modal, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { useAction } from '../../use-action.ts';
import { InviteLink } from './invite-link.tsx';
import { RolesField } from './roles-field.tsx';

/** Adds a user, then shows the link that lets him in: only this once. */
export function InviteDialog({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState('');
  const [full_name, setName] = useState('');
  const [role_ids, setRoles] = useState<string[]>([]);
  const create = useAction(trpc.users.create, { failed: null, refresh: [trpc.users.list, trpc.roles.list] });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // No role chosen is left to the service, which gives the role Viewer.
    create.mutate({ email, full_name, ...(role_ids.length > 0 && { role_ids }) });
  };
  const link = create.data?.invite_link;
  return (
    <Modal opened onClose={onClose} title={link ? `${full_name} is invited` : 'Invite a user'}>
      {link ? (
        <InviteLink link={link} onClose={onClose} />
      ) : (
        <form className="stack" onSubmit={submit}>
          <TextInput
            label="E-mail"
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
          <RolesField value={role_ids} onChange={setRoles} description="Without one: Viewer, who may only read" />
          {create.error && <Failure title="The user was not invited" error={create.error} />}
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
