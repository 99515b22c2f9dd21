import { Button, Modal, MultiSelect, NumberInput, TextInput } from '@mantine/core';
import { type FormEvent, type ReactNode, useState } from 'react';
import { type RouterInputs, trpc } from '../api.ts';
import { useCurrentUser } from '../current-user.ts';
import { useAction } from '../use-action.ts';
import { KeyShownOnce } from './copy-field.tsx';
import { Failure } from './failure.tsx';

type Scopes = NonNullable<RouterInputs['users']['createKey']['scopes']>;

interface CreateKeyProps {
  /** A service account. Default: the caller. */
  user_id?: string;
  onClose: () => void;
}

/** Creates a key for a program, then shows it, once. */
export function CreateKeyDialog({ user_id, onClose }: CreateKeyProps) {
  const create = useAction(trpc.users.createKey, {
    failed: null,
    refresh: [trpc.users.listKeys, trpc.users.listServiceAccounts],
  });
  const api_key = create.data?.api_key;
  return (
    <KeyModal title={api_key ? 'The new API key' : 'Create API key'} isShown={Boolean(api_key)} onClose={onClose}>
      {api_key ? (
        <div className="stack">
          <KeyShownOnce value={api_key} />
          <div className="form-foot">
            <Button onClick={onClose}>I saved the key</Button>
          </div>
        </div>
      ) : (
        <KeyForm
          isOwn={user_id === undefined}
          isPending={create.isPending}
          onCancel={onClose}
          onSubmit={(key) => create.mutate({ ...key, user_id })}
        >
          {create.error && <Failure title="Key not created" error={create.error} />}
        </KeyForm>
      )}
    </KeyModal>
  );
}

interface KeyFormProps {
  isOwn: boolean;
  isPending: boolean;
  children: ReactNode;
  onCancel: () => void;
  onSubmit: (key: { name: string; scopes: Scopes | null; expires_in_days: number }) => void;
}

function KeyForm({ isOwn, isPending, children, onCancel, onSubmit }: KeyFormProps) {
  const { permissions } = useCurrentUser();
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<string[]>([]);
  const [days, setDays] = useState(90);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit({ name, scopes: scopes.length > 0 ? (scopes as Scopes) : null, expires_in_days: days });
  };
  return (
    <form className="stack" onSubmit={submit}>
      <TextInput
        label="Name"
        description="What uses the key"
        required
        data-autofocus
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <MultiSelect
        label="Scopes"
        description={`Leave empty for all permissions of ${isOwn ? 'your user' : 'the service account'}`}
        data={permissions}
        value={scopes}
        onChange={setScopes}
        searchable
      />
      <NumberInput
        label="Valid for (days)"
        min={1}
        max={365}
        allowDecimal={false}
        value={days}
        onChange={(value) => setDays(Number(value))}
      />
      {children}
      <div className="form-foot">
        <Button variant="default" onClick={onCancel}>
          Cancel
        </Button>
        <Button type="submit" loading={isPending}>
          Create key
        </Button>
      </div>
    </form>
  );
}

interface KeyModalProps {
  title: string;
  /** The key is shown: a stray click must not lose it before it is saved. */
  isShown: boolean;
  onClose: () => void;
  children: ReactNode;
}

export const KeyModal = ({ title, isShown, onClose, children }: KeyModalProps) => (
  <Modal opened onClose={onClose} title={title} size="lg" closeOnClickOutside={!isShown} closeOnEscape={!isShown}>
    {children}
  </Modal>
);
