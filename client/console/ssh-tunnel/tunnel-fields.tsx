import { NumberInput, Switch, TextInput } from '@mantine/core';
import { TunnelKey } from './tunnel-key.tsx';
import type { Tunnel, TunnelField, TunnelFormState } from './use-tunnel-form.ts';

interface TunnelFieldsProps {
  form: TunnelFormState;
  /** The stored tunnel; null for a new connector. */
  stored?: Tunnel | null;
  disabled?: boolean;
}

/** Address, user, key and host key of the SSH server in front of a database. */
export function TunnelFields({ form, stored = null, disabled = false }: TunnelFieldsProps) {
  const { values, set } = form;
  return (
    <fieldset className="bare-fieldset stack" disabled={disabled}>
      <legend className="group-name">SSH tunnel</legend>
      <Switch
        label="Connect through an SSH tunnel"
        description="For databases that are only reachable from an SSH server, such as a bastion host"
        checked={values.enabled}
        onChange={(event) => set({ enabled: event.currentTarget.checked })}
      />
      {values.enabled && <Server {...{ form, stored, disabled }} />}
      {!values.enabled && stored && <p className="dimmed">The tunnel settings are kept while it is off.</p>}
    </fieldset>
  );
}

function Server({ form, stored, disabled }: Required<TunnelFieldsProps>) {
  const { values, set } = form;
  const frame = (field: TunnelField) => ({
    name: `ssh_${field}`,
    error: form.problems[field] ?? null,
    onBlur: () => form.touch(field),
  });
  // A host key belongs to its server, so a new server is expected to present a new key.
  const isMoved = stored !== null && (values.host.trim() !== stored.host || Number(values.port) !== stored.port);
  const move = (change: { host: string } | { port: number | string }) => {
    const isOld = values.host_key_fingerprint === (stored?.host_key_fingerprint ?? '');
    set({ ...change, ...(isOld && { host_key_fingerprint: '' }) });
  };
  return (
    <>
      <div className="fields">
        <TextInput
          {...frame('host')}
          label="SSH server"
          description="Host name or address"
          withAsterisk
          spellCheck={false}
          placeholder="bastion.example.org"
          value={values.host}
          onChange={(event) => move({ host: event.currentTarget.value })}
        />
        <NumberInput
          {...frame('port')}
          label="SSH port"
          description="Usually 22"
          withAsterisk
          hideControls
          allowDecimal={false}
          clampBehavior="none"
          value={values.port}
          onChange={(port) => move({ port })}
        />
        <TextInput
          {...frame('username')}
          label="SSH user"
          description="Needs no shell access"
          withAsterisk
          spellCheck={false}
          autoComplete="off"
          value={values.username}
          onChange={(event) => set({ username: event.currentTarget.value })}
        />
        <TextInput
          {...frame('host_key_fingerprint')}
          className="wide"
          label="Host key fingerprint"
          description={
            values.host_key_fingerprint === ''
              ? 'Leave empty to trust the key of the first login from then on'
              : 'The only host key that is accepted from this server'
          }
          classNames={{ input: 'mono' }}
          spellCheck={false}
          placeholder="SHA256:…"
          value={values.host_key_fingerprint}
          onChange={(event) => set({ host_key_fingerprint: event.currentTarget.value })}
        />
      </div>
      {isMoved && <p className="dimmed">New server: the host key of the first login will be trusted.</p>}
      <TunnelKey {...{ form, stored, disabled }} />
      <p className="dimmed">
        The database host and port are resolved from the SSH server, so <code>localhost</code> is the SSH server itself.
      </p>
    </>
  );
}
