import { Button, Modal, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { Confirm } from '../../components/confirm.tsx';
import { CreateKeyDialog } from '../../components/create-key.tsx';
import { Failure } from '../../components/failure.tsx';
import { KeyList } from '../../components/key-list.tsx';
import { Section } from '../../components/page.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { useAction } from '../../use-action.ts';
import { RolesField } from './roles-field.tsx';

type ServiceAccount = RouterOutputs['users']['listServiceAccounts'][number];

/** Users for programs, with their keys. */
export function ServiceAccounts() {
  const accounts = useQuery(trpc.users.listServiceAccounts.queryOptions());
  const mayManage = usePermission('users.manage');
  const [isCreating, setCreating] = useState(false);
  return (
    <Section
      title="Service accounts"
      lead="For programs: with roles and keys of their own, and without a person that might leave."
      actions={
        <Button variant="default" disabled={!mayManage} onClick={() => setCreating(true)}>
          Create service account
        </Button>
      }
    >
      <QueryView query={accounts} skeleton={null}>
        {(list) => (
          <ul className="lines">
            {list.map((account) => (
              <Line key={account.id} account={account} mayManage={mayManage} />
            ))}
          </ul>
        )}
      </QueryView>
      {isCreating && <CreateDialog onClose={() => setCreating(false)} />}
    </Section>
  );
}

function Line({ account, mayManage }: { account: ServiceAccount; mayManage: boolean }) {
  const [hasDialog, setDialog] = useState(false);
  const remove = useAction(trpc.users.delete, {
    done: `${account.name} deleted`,
    failed: 'Service account not deleted',
  });
  return (
    <li>
      <div className="grow">
        <b>{account.name}</b>{' '}
        <span className="dimmed">
          {account.roles.map(({ name }) => name).join(', ') || 'No roles'} · Last used{' '}
          <RelativeTime at={account.last_used_at} never="never" />
        </span>
        {mayManage && <KeyList user_id={account.id} />}
      </div>
      {mayManage && (
        <div className="row">
          <Button size="xs" variant="default" onClick={() => setDialog(true)}>
            Create key
          </Button>
          <Confirm
            title={`Delete ${account.name}?`}
            action="Delete service account"
            onConfirm={() => remove.mutate({ user_id: account.id })}
            trigger={(open) => (
              <Button size="xs" variant="light" color="red" loading={remove.isPending} onClick={open}>
                Delete
              </Button>
            )}
          >
            All of its API keys stop working immediately.
          </Confirm>
        </div>
      )}
      {hasDialog && <CreateKeyDialog user_id={account.id} onClose={() => setDialog(false)} />}
    </li>
  );
}

function CreateDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [role_ids, setRoles] = useState<string[]>([]);
  const create = useAction(trpc.users.createServiceAccount, {
    done: 'Service account created',
    failed: null,
    refresh: [trpc.users.listServiceAccounts],
    after: onClose,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate({ name, role_ids });
  };
  return (
    <Modal opened onClose={onClose} title="Create service account">
      <form className="stack" onSubmit={submit}>
        <TextInput
          label="Name"
          required
          data-autofocus
          autoComplete="off"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <RolesField value={role_ids} onChange={setRoles} description="What its keys may do" />
        {create.error && <Failure title="Service account not created" error={create.error} />}
        <div className="form-foot">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending}>
            Create service account
          </Button>
        </div>
      </form>
    </Modal>
  );
}
