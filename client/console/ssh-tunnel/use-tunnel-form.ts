import { useState } from 'react';
import type { RouterInputs, RouterOutputs } from '../api.ts';

/** A tunnel as the service shows it. */
export type Tunnel = NonNullable<RouterOutputs['account_connectors']['get']['ssh_tunnel']>;
export type MadeKey = RouterOutputs['account_connectors']['generateSshKey'];
type Request = NonNullable<RouterInputs['account_connectors']['create']['ssh_tunnel']>;
type Change = NonNullable<RouterInputs['account_connectors']['update']['ssh_tunnel']>;

export interface TunnelValues {
  enabled: boolean;
  host: string;
  port: number | string;
  username: string;
  /** Which key logs in: the stored one, one that the service made just now, or one that is pasted. */
  key: 'stored' | 'made' | 'own';
  private_key: string;
  /** Of the server; empty: the one of the first login. */
  host_key_fingerprint: string;
}

export type TunnelField = keyof TunnelValues;

export interface TunnelFormState {
  values: TunnelValues;
  made: MadeKey | null;
  setMade(key: MadeKey): void;
  set(change: Partial<TunnelValues>): void;
  problems: Partial<Record<TunnelField, string>>;
  touch(field: TunnelField): void;
  /** Shows every problem from now on. True: there is none. */
  check(): boolean;
  /** What the service would be told; undefined: nothing of it changed. */
  changed(): Change | undefined;
  /** As `changed`, of one that is still to be made. */
  whole(): Request | undefined;
  /** Takes a problem that the service found; false: it is not about the tunnel. */
  refuse(place: unknown, message: string): boolean;
}

const SSH_PORT = 22;
const FINGERPRINT = /^SHA256:[A-Za-z0-9+/]{43}$/;

const valuesOf = (stored: Tunnel | null): TunnelValues => ({
  enabled: stored?.enabled ?? false,
  host: stored?.host ?? '',
  port: stored?.port ?? SSH_PORT,
  username: stored?.username ?? '',
  key: stored ? 'stored' : 'made',
  private_key: '',
  host_key_fingerprint: stored?.host_key_fingerprint ?? '',
});

/** The state of the fields of an SSH tunnel. `stored`: what it is now; the private key is never told. */
export function useTunnelForm(stored: Tunnel | null = null): TunnelFormState {
  const before = valuesOf(stored);
  // Only what was typed: the host key may be noted meanwhile.
  const [edits, setEdits] = useState<Partial<TunnelValues>>({});
  const values = { ...before, ...edits };
  const [made, setMade] = useState<MadeKey | null>(null);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [refused, setRefused] = useState<Partial<Record<TunnelField, string>>>({});
  const found = values.enabled ? problemsOf(values, made) : {};
  const shown = Object.entries(found).filter(([field]) => touched.has(field));
  const changed = () => (values.enabled || before.enabled ? changesOf(values, { before, made }) : undefined);
  return {
    values,
    made,
    setMade,
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

/** What can be told without asking anybody. */
function problemsOf(values: TunnelValues, made: MadeKey | null): Partial<Record<TunnelField, string>> {
  const { host, port, username, key, private_key, host_key_fingerprint } = values;
  const isPort = Number.isInteger(Number(port)) && Number(port) >= 1 && Number(port) <= 65_535;
  const fingerprint = host_key_fingerprint.trim();
  const problems: Record<string, string | false> = {
    host: host.trim() === '' ? 'The SSH server is needed' : /[/\\\s@]/.test(host.trim()) && 'A host name or an address',
    port: !isPort && 'A port from 1 to 65535',
    username: username.trim() === '' && 'A user is needed',
    key: key === 'made' && made === null && 'There is no key yet: make one',
    private_key: key === 'own' && private_key.trim() === '' && 'The private key is needed',
    host_key_fingerprint:
      fingerprint !== '' && !FINGERPRINT.test(fingerprint) && 'SHA256: and 43 characters, as ssh-keygen -l shows it',
  };
  return Object.fromEntries(Object.entries(problems).filter(([, problem]) => problem !== false));
}

function changesOf(
  values: TunnelValues,
  { before, made }: { before: TunnelValues; made: MadeKey | null },
): Change | undefined {
  if (!values.enabled) return { enabled: false };
  const host_key_fingerprint = values.host_key_fingerprint.trim();
  const changes: Change = {
    ...(!before.enabled && { enabled: true }),
    ...(values.host.trim() !== before.host && { host: values.host.trim() }),
    ...(Number(values.port) !== before.port && { port: Number(values.port) }),
    ...(values.username.trim() !== before.username && { username: values.username.trim() }),
    ...(values.key === 'made' && made && { encrypted_private_key: made.encrypted_private_key }),
    ...(values.key === 'own' && { private_key: values.private_key }),
    ...(host_key_fingerprint !== before.host_key_fingerprint && {
      host_key_fingerprint: host_key_fingerprint === '' ? null : host_key_fingerprint,
    }),
  };
  return Object.keys(changes).length > 0 ? changes : undefined;
}
