import { useState } from 'react';
import type { RouterInputs, RouterOutputs } from '../api.ts';

/** A tunnel as the service presents it. */
export type Tunnel = NonNullable<RouterOutputs['account_connectors']['get']['ssh_tunnel']>;
type GeneratedKey = RouterOutputs['account_connectors']['generateSshKey'];
type Request = NonNullable<RouterInputs['account_connectors']['create']['ssh_tunnel']>;
type Change = NonNullable<RouterInputs['account_connectors']['update']['ssh_tunnel']>;

export interface TunnelValues {
  enabled: boolean;
  host: string;
  port: number | string;
  username: string;
  /** The stored key, one that the service just generated, or a pasted one. */
  key: 'stored' | 'generated' | 'own';
  private_key: string;
  /** Of the server; empty to trust the key of the first login. */
  host_key_fingerprint: string;
}

export type TunnelField = keyof TunnelValues;

export interface TunnelFormState {
  values: TunnelValues;
  generated: GeneratedKey | null;
  setGenerated(key: GeneratedKey): void;
  set(change: Partial<TunnelValues>): void;
  problems: Partial<Record<TunnelField, string>>;
  touch(field: TunnelField): void;
  /** Shows all errors from now on. True if there are none. */
  check(): boolean;
  /** The connection would take another way than the stored settings lead. */
  isMoved: boolean;
  /** The settings to send; undefined if none changed. */
  changed(): Change | undefined;
  /** All settings, for a new connector. */
  whole(): Request | undefined;
  /** Shows an error of the service at its field; false if it is not about the tunnel. */
  refuse(place: unknown, message: string): boolean;
}

const SSH_PORT = 22;
const FINGERPRINT = /^SHA256:[A-Za-z0-9+/]{43}$/;

const valuesOf = (stored: Tunnel | null): TunnelValues => ({
  enabled: stored?.enabled ?? false,
  host: stored?.host ?? '',
  port: stored?.port ?? SSH_PORT,
  username: stored?.username ?? '',
  key: stored ? 'stored' : 'generated',
  private_key: '',
  host_key_fingerprint: stored?.host_key_fingerprint ?? '',
});

/** State of the SSH tunnel fields. `stored` has the current settings, without the private key. */
export function useTunnelForm(stored: Tunnel | null = null): TunnelFormState {
  const before = valuesOf(stored);
  // Only edits are kept here, because the service may store the host key meanwhile.
  const [edits, setEdits] = useState<Partial<TunnelValues>>({});
  const values = { ...before, ...edits };
  const [generated, setGenerated] = useState<GeneratedKey | null>(null);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [refused, setRefused] = useState<Partial<Record<TunnelField, string>>>({});
  const found = values.enabled ? problemsOf(values, generated) : {};
  const shown = Object.entries(found).filter(([field]) => touched.has(field));
  const changed = () => (values.enabled || before.enabled ? changesOf(values, { before, generated }) : undefined);
  return {
    values,
    generated,
    setGenerated,
    set: (change) => {
      setEdits((now) => ({ ...now, ...change }));
      setRefused((now) => Object.fromEntries(Object.entries(now).filter(([field]) => !(field in change))));
    },
    problems: { ...refused, ...Object.fromEntries(shown) },
    touch: (field) => setTouched((now) => new Set([...now, field])),
    check: () => {
      setTouched(new Set(Object.keys(values)));
      return Object.keys(found).length === 0;
    },
    isMoved: isMoved(before, values),
    changed,
    whole: () =>
      values.enabled ? { ...changed(), host: values.host.trim(), username: values.username.trim() } : undefined,
    refuse: (place, message) => {
      const field = typeof place === 'string' ? /^ssh_tunnel\.(\w+)$/.exec(place)?.[1] : undefined;
      if (field === undefined || !(field in values)) return false;
      setRefused({ [field]: message });
      return true;
    },
  };
}

/** A first host key replaces no other. */
function isMoved(before: TunnelValues, after: TunnelValues): boolean {
  if (!before.enabled || !after.enabled) return before.enabled !== after.enabled;
  const isRepinned =
    before.host_key_fingerprint !== '' && before.host_key_fingerprint !== after.host_key_fingerprint.trim();
  return before.host !== after.host.trim() || before.port !== Number(after.port) || isRepinned;
}

/** Errors that need no request. */
function problemsOf(values: TunnelValues, generated: GeneratedKey | null): Partial<Record<TunnelField, string>> {
  const { host, port, username, key, private_key, host_key_fingerprint } = values;
  const isPort = Number.isInteger(Number(port)) && Number(port) >= 1 && Number(port) <= 65_535;
  const fingerprint = host_key_fingerprint.trim();
  const problems: Record<string, string | false> = {
    host:
      host.trim() === ''
        ? 'Enter the SSH server'
        : /[/\\\s@]/.test(host.trim()) && 'Enter a host name or an IP address',
    port: !isPort && 'Enter a port from 1 to 65535',
    username: username.trim() === '' && 'Enter the SSH user',
    key: key === 'generated' && generated === null && 'Generate a key first',
    private_key: key === 'own' && private_key.trim() === '' && 'Paste the private key',
    host_key_fingerprint:
      fingerprint !== '' &&
      !FINGERPRINT.test(fingerprint) &&
      'Enter SHA256: and 43 characters, as printed by ssh-keygen -l',
  };
  return Object.fromEntries(Object.entries(problems).filter(([, problem]) => problem !== false));
}

function changesOf(
  values: TunnelValues,
  { before, generated }: { before: TunnelValues; generated: GeneratedKey | null },
): Change | undefined {
  if (!values.enabled) return { enabled: false };
  const host_key_fingerprint = values.host_key_fingerprint.trim();
  const changes: Change = {
    ...(!before.enabled && { enabled: true }),
    ...(values.host.trim() !== before.host && { host: values.host.trim() }),
    ...(Number(values.port) !== before.port && { port: Number(values.port) }),
    ...(values.username.trim() !== before.username && { username: values.username.trim() }),
    ...(values.key === 'generated' && generated && { encrypted_private_key: generated.encrypted_private_key }),
    ...(values.key === 'own' && { private_key: values.private_key }),
    ...(host_key_fingerprint !== before.host_key_fingerprint && {
      host_key_fingerprint: host_key_fingerprint === '' ? null : host_key_fingerprint,
    }),
  };
  return Object.keys(changes).length > 0 ? changes : undefined;
}
