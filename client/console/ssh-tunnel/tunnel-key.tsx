import { Button, Radio, Textarea } from '@mantine/core';
import { useEffect } from 'react';
import { trpc } from '../api.ts';
import { CopyField } from '../components/copy-field.tsx';
import { Failure } from '../components/failure.tsx';
import { useAction } from '../use-action.ts';
import type { Tunnel, TunnelFormState } from './use-tunnel-form.ts';

interface TunnelKeyProps {
  form: TunnelFormState;
  stored: Tunnel | null;
  disabled: boolean;
}

/** The key that logs in, and the line that the SSH server needs for it. */
export function TunnelKey({ form, stored, disabled }: TunnelKeyProps) {
  const { values, set, made, setMade } = form;
  const make = useAction(trpc.account_connectors.generateSshKey, { failed: null, refresh: [], after: setMade });
  const isWanted = values.key === 'made' && made === null && !disabled;
  const { mutate } = make;
  useEffect(() => {
    if (isWanted) mutate();
  }, [isWanted, mutate]);
  const shown = values.key === 'made' ? made : values.key === 'stored' ? stored : null;
  return (
    <div className="stack">
      <Radio.Group label="Key that logs in" value={values.key} onChange={(key) => set({ key })}>
        <div className="stack tunnel-keys">
          {stored && <Radio value="stored" label="The one that is stored" disabled={disabled} />}
          <Radio
            value="made"
            label={stored ? 'A new one that the service makes' : 'One that the service makes'}
            disabled={disabled}
          />
          <Radio value="own" label="One of your own" disabled={disabled} />
        </div>
      </Radio.Group>
      {values.key === 'own' && (
        <Textarea
          label="Private key"
          description="PEM or OpenSSH, without a passphrase. It is encrypted at once and never shown again"
          withAsterisk
          className="wide"
          classNames={{ input: 'mono' }}
          autosize
          minRows={4}
          maxRows={12}
          spellCheck={false}
          autoComplete="off"
          name="ssh_private_key"
          placeholder="-----BEGIN OPENSSH PRIVATE KEY-----"
          value={values.private_key}
          error={form.problems.private_key}
          onBlur={() => form.touch('private_key')}
          onChange={(event) => set({ private_key: event.currentTarget.value })}
        />
      )}
      {values.key === 'made' && make.error && (
        <>
          <Failure title="There is no key" error={make.error} />
          <Button variant="default" className="fit" loading={make.isPending} onClick={() => mutate()}>
            Make a key
          </Button>
        </>
      )}
      {shown?.public_key && <PublicKey public_key={shown.public_key} username={values.username.trim()} />}
    </div>
  );
}

/** What the SSH server is told, before the first login. */
function PublicKey({ public_key, username }: { public_key: string; username: string }) {
  return (
    <div className="stack">
      <CopyField
        label={`Line for ~/.ssh/authorized_keys of ${username || 'the SSH user'}`}
        description="It lets this key through to the database and to nothing else: no shell, no files"
        value={`restrict,port-forwarding ${public_key}`}
      />
      <details className="fold">
        <summary>The public key alone</summary>
        <CopyField label="Public key" description="For a page of a cloud that takes keys" value={public_key} />
      </details>
    </div>
  );
}
