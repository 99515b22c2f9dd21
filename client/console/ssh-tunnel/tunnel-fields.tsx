import { NumberInput, Switch, TextInput } from '@mantine/core';
import { TunnelKey } from './tunnel-key.tsx';
import type { Tunnel, TunnelField, TunnelFormState } from './use-tunnel-form.ts';

interface TunnelFieldsProps {
  form: TunnelFormState;
  /** What is stored now; null of one that is still to be made. */
  stored?: Tunnel | null;
  disabled?: boolean;
}

/** For a database that only an SSH server reaches: where that is, who logs in, with which key, and which key it shows. */
export function TunnelFields({ form, stored = null, disabled = false }: TunnelFieldsProps) {
  const { values, set } = form;
  return (
    <fieldset className="bare-fieldset stack" disabled={disabled}>
      <legend className="group-name">SSH tunnel</legend>
      <Switch
        label="Connect through an SSH tunnel"
        description="For a database that is reached from an SSH server (jump host, bastion) alone"
        checked={values.enabled}
        onChange={(event) => set({ enabled: event.currentTarget.checked })}
      />
      {values.enabled && <Server {...{ form, stored, disabled }} />}
      {!values.enabled && stored && <p className="dimmed">The settings of the tunnel are kept while it is off.</p>}
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
  // A key belongs to a server: with another one, another key is no surprise.
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
          description="Who logs in there; no shell is needed"
          withAsterisk
          spellCheck={false}
          autoComplete="off"
          value={values.username}
          onChange={(event) => set({ username: event.currentTarget.value })}
        />
        <TextInput
          {...frame('host_key_fingerprint')}
          className="wide"
          label="Host key of the SSH server"
          description={
            values.host_key_fingerprint === ''
              ? 'Left empty: the key of the first login is noted, and only that one is taken from then on'
              : 'The only key that is taken from this server'
          }
          classNames={{ input: 'mono' }}
          spellCheck={false}
          placeholder="SHA256:…"
          value={values.host_key_fingerprint}
          onChange={(event) => set({ host_key_fingerprint: event.currentTarget.value })}
        />
      </div>
      {isMoved && <p className="dimmed">Another server: the key that it shows at its first login is noted anew.</p>}
      <TunnelKey {...{ form, stored, disabled }} />
      <p className="dimmed">
        Host and port of the database are looked up from there: <code>localhost</code> is the SSH server itself.
      </p>
    </>
  );
}
