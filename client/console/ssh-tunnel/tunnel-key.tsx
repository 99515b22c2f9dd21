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

/** The SSH key, and the line that the SSH server needs for it. */
export function TunnelKey({ form, stored, disabled }: TunnelKeyProps) {
  const { values, set, generated, setGenerated } = form;
  const generate = useAction(trpc.account_connectors.generateSshKey, {
    failed: null,
    refresh: [],
    after: setGenerated,
  });
  const isWanted = values.key === 'generated' && generated === null && !disabled;
  const { mutate } = generate;
  useEffect(() => {
    if (isWanted) mutate();
  }, [isWanted, mutate]);
  const shown = values.key === 'generated' ? generated : values.key === 'stored' ? stored : null;
  return (
    <div className="stack">
      <Radio.Group label="SSH key" value={values.key} onChange={(key) => set({ key })}>
        <div className="stack tunnel-keys">
          {stored && <Radio value="stored" label="Stored key" disabled={disabled} />}
          <Radio value="generated" label={stored ? 'Generate a new key' : 'Generate a key'} disabled={disabled} />
          <Radio value="own" label="Use your own key" disabled={disabled} />
        </div>
      </Radio.Group>
      {values.key === 'own' && (
        <Textarea
          label="Private key"
          description="PEM or OpenSSH format, without a passphrase. It is stored encrypted and never shown again"
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
      {values.key === 'generated' && generate.error && (
        <>
          <Failure title="Key not generated" error={generate.error} />
          <Button variant="default" className="fit" loading={generate.isPending} onClick={() => mutate()}>
            Generate key
          </Button>
        </>
      )}
      {shown?.public_key && <PublicKey public_key={shown.public_key} username={values.username.trim()} />}
    </div>
  );
}

/** What to add on the SSH server before the first login. */
function PublicKey({ public_key, username }: { public_key: string; username: string }) {
  return (
    <div className="stack">
      <CopyField
        label={`Line for ~/.ssh/authorized_keys of ${username || 'the SSH user'}`}
        description="Allows port forwarding only: no shell, no files"
        value={`restrict,port-forwarding ${public_key}`}
      />
      <details className="fold">
        <summary>Public key only</summary>
        <CopyField label="Public key" description="For cloud consoles that ask for a public key" value={public_key} />
      </details>
    </div>
  );
}
