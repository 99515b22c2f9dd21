import { Alert, Button, PasswordInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { type RouterOutputs, trpc } from '../api.ts';
import { Confirm } from '../components/confirm.tsx';
import { Icon } from '../components/icon.tsx';
import { MASK } from '../parameter-form/parameter-values.ts';
import { useAction } from '../use-action.ts';
import type { Tunnel } from './use-tunnel-form.ts';

type Connector = Pick<
  RouterOutputs['account_connectors']['get'],
  'id' | 'status_reason' | 'ssh_tunnel' | 'parameters' | 'connector_type' | 'connector_name'
>;

/** What to do about each tunnel error, and about a refused connection that looks like one. */
const ADVICE: Record<string, (to: { tunnel: Tunnel; database: string }) => ReactNode> = {
  ssh_unreachable: () => 'Check the SSH server and port, and that its firewall allows this service.',
  ssh_timeout: () => 'A firewall may be dropping packets. Check the SSH server and port, and allow this service.',
  ssh_login_refused: ({ tunnel }) => (
    <>
      Check that <code>~/.ssh/authorized_keys</code> of <code>{tunnel.username}</code> contains the line below, complete
      and on one line. Only that user may have write access to the file and its folder.
    </>
  ),
  ssh_forward_refused: ({ database }) => (
    <>
      The login works, but forwarding is refused. In <code>sshd_config</code> on the server, set{' '}
      <code>AllowTcpForwarding</code> to <code>yes</code> or <code>local</code>, and make sure that{' '}
      <code>PermitOpen</code> allows <code>{database}</code>.
    </>
  ),
  ssh_not_compatible: () => 'The SSH server supports no common algorithm. Upgrade it to a newer version.',
  ssh_connection_lost: () => 'The SSH server closed the connection. Check its log, then test again.',
  invalid_ssh_key: () => 'Select another key below.',
  connection_refused: ({ database }) => (
    <>
      The tunnel works, but the database does not respond. Check that <code>{database}</code> is correct from the SSH
      server’s point of view: <code>localhost</code> is the SSH server itself.
    </>
  ),
};

/** Whether TunnelState shows a problem, so that its message need not appear elsewhere as well. */
export const hasTunnelProblem = ({ ssh_tunnel, status_reason }: Pick<Connector, 'ssh_tunnel' | 'status_reason'>) =>
  ssh_tunnel?.enabled === true &&
  (ssh_tunnel.refused_host_key_fingerprint !== null || (status_reason !== null && status_reason in ADVICE));

/** The problem of a tunnelled connector: the tunnel, a changed host key, or the database behind it. */
export function TunnelState({ connector, disabled }: { connector: Connector; disabled: boolean }) {
  const { ssh_tunnel: tunnel, status_reason, parameters } = connector;
  if (!tunnel || !hasTunnelProblem(connector)) return null;
  if (tunnel.refused_host_key_fingerprint !== null) return <ChangedHostKey {...{ connector, tunnel, disabled }} />;
  const reason = status_reason ?? '';
  const isPlain = (part: unknown): part is string | number => typeof part === 'string' || typeof part === 'number';
  const database = [parameters.host, parameters.port].filter(isPlain).join(':');
  const isTunnel = /^(ssh_|invalid_ssh_key$)/.test(reason);
  return (
    <Alert
      color={isTunnel ? 'red' : 'yellow'}
      icon={<Icon name="alert" />}
      title={isTunnel ? 'The SSH tunnel does not work' : 'The database behind the tunnel does not respond'}
    >
      <p>{ADVICE[reason]?.({ tunnel, database })}</p>
    </Alert>
  );
}

interface ChangedHostKeyProps {
  connector: Connector;
  tunnel: Tunnel;
  disabled: boolean;
}

function ChangedHostKey({ connector, tunnel, disabled }: ChangedHostKeyProps) {
  const { host, port, host_key_fingerprint, refused_host_key_fingerprint: shown } = tunnel;
  const accept = useAction(trpc.account_connectors.update, { done: 'Host key accepted' });
  const [secrets, setSecrets] = useState<Record<string, string>>({});
  const stored = useStoredSecrets(connector);
  return (
    <Alert color="red" icon={<Icon name="alert" />} title="The host key of the SSH server has changed">
      <p>
        No data was sent. If {host} was reinstalled, accept its new key. Otherwise the connection may be intercepted:
        ask the administrator of the server, who can compare the key with{' '}
        <code>ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub</code>.
      </p>
      <dl className="facts host-keys">
        <div>
          <dt>Trusted</dt>
          <dd className="mono">{host_key_fingerprint}</dd>
        </div>
        <div>
          <dt>Presented</dt>
          <dd className="mono">{shown}</dd>
        </div>
      </dl>
      <Confirm
        title={`Accept the new host key of ${host}:${port}?`}
        action="Accept new key"
        isReady={stored.every(({ name }) => Boolean(secrets[name]))}
        onConfirm={() =>
          accept.mutate({
            account_connector_id: connector.id,
            ssh_tunnel: { host_key_fingerprint: shown },
            parameters: secrets,
          })
        }
        trigger={(open) => (
          <Button variant="default" disabled={disabled} loading={accept.isPending} onClick={open}>
            Accept new key
          </Button>
        )}
      >
        Only <code className="mono">{shown}</code> will be accepted from now on. The server with this key receives your
        rows and passwords.
        {stored.map(({ name, label }) => (
          <PasswordInput
            key={name}
            label={label}
            description="Enter again for the new key"
            autoComplete="new-password"
            value={secrets[name] ?? ''}
            onChange={({ currentTarget: { value } }) => setSecrets((before) => ({ ...before, [name]: value }))}
          />
        ))}
      </Confirm>
    </Alert>
  );
}

/** The parameters with a stored secret: it goes to another server only if it is entered again. */
function useStoredSecrets({ connector_type, connector_name, parameters }: Connector) {
  const entry = useQuery(trpc.connectors.get.queryOptions({ connector_type, connector_name }));
  return (entry.data?.parameters ?? []).filter(({ name, secret }) => secret && parameters[name] === MASK);
}
