import { Alert, Button } from '@mantine/core';
import type { ReactNode } from 'react';
import { type RouterOutputs, trpc } from '../api.ts';
import { Confirm } from '../components/confirm.tsx';
import { Icon } from '../components/icon.tsx';
import { useAction } from '../use-action.ts';
import type { Tunnel } from './use-tunnel-form.ts';

type Connector = Pick<RouterOutputs['account_connectors']['get'], 'id' | 'status_reason' | 'ssh_tunnel' | 'parameters'>;

/** What to do about each fault of the tunnel, and about the one that looks like one. */
const ADVICE: Record<string, (to: { tunnel: Tunnel; database: string }) => ReactNode> = {
  ssh_unreachable: () => 'Look at the SSH server and port, and whether its firewall lets this service in.',
  ssh_timeout: () => 'A firewall may drop what this service sends: look at the SSH server and port, and let it in.',
  ssh_login_refused: ({ tunnel }) => (
    <>
      Is the line below in <code>~/.ssh/authorized_keys</code> of <code>{tunnel.username}</code>, whole and on one line?
      That file and its folder may be writable for nobody but that user.
    </>
  ),
  ssh_forward_refused: ({ database }) => (
    <>
      The login works. In <code>sshd_config</code> of the server, <code>AllowTcpForwarding</code> has to be{' '}
      <code>yes</code> or <code>local</code>, and <code>PermitOpen</code> must not leave out <code>{database}</code>.
    </>
  ),
  ssh_not_compatible: () => 'The two have no method in common: a newer SSH server is needed there.',
  ssh_connection_lost: () => 'Its log tells why it hung up; then test again.',
  invalid_ssh_key: () => 'Choose another key below.',
  connection_refused: ({ database }) => (
    <>
      The tunnel stands; it is the database that does not answer. From the SSH server, is <code>{database}</code> right?{' '}
      <code>localhost</code> there is the SSH server itself.
    </>
  ),
};

/** Whether there is something to tell: then its message need not stand elsewhere as well. */
export const hasTunnelTrouble = ({ ssh_tunnel, status_reason }: Pick<Connector, 'ssh_tunnel' | 'status_reason'>) =>
  ssh_tunnel?.enabled === true &&
  (ssh_tunnel.refused_host_key_fingerprint !== null || (status_reason !== null && status_reason in ADVICE));

/** What stands in the way of a tunnelled connector: the tunnel, its server's new key, or the database behind it. */
export function TunnelState({ connector, disabled }: { connector: Connector; disabled: boolean }) {
  const { ssh_tunnel: tunnel, status_reason, parameters } = connector;
  if (!tunnel || !hasTunnelTrouble(connector)) return null;
  if (tunnel.refused_host_key_fingerprint !== null) return <ChangedHostKey {...{ connector, tunnel, disabled }} />;
  const reason = status_reason ?? '';
  const isPlain = (part: unknown): part is string | number => typeof part === 'string' || typeof part === 'number';
  const database = [parameters.host, parameters.port].filter(isPlain).join(':');
  const isTunnel = /^(ssh_|invalid_ssh_key$)/.test(reason);
  return (
    <Alert
      color={isTunnel ? 'red' : 'yellow'}
      icon={<Icon name="alert" />}
      title={isTunnel ? 'The SSH tunnel does not work' : 'The database behind the tunnel does not answer'}
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
  const accept = useAction(trpc.account_connectors.update, { done: 'The new host key is noted' });
  return (
    <Alert color="red" icon={<Icon name="alert" />} title="The SSH server shows another host key">
      <p>
        Nothing was sent to it. If {host} was set up anew, take its new key; if not, somebody may stand between: ask
        whoever runs it. There, <code>ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub</code> shows the right one.
      </p>
      <dl className="facts host-keys">
        <div>
          <dt>Known</dt>
          <dd className="mono">{host_key_fingerprint}</dd>
        </div>
        <div>
          <dt>Shown now</dt>
          <dd className="mono">{shown}</dd>
        </div>
      </dl>
      <Confirm
        title={`Take the new key of ${host}:${port}?`}
        action="Take the new key"
        onConfirm={() =>
          accept.mutate({ account_connector_id: connector.id, ssh_tunnel: { host_key_fingerprint: shown } })
        }
        trigger={(open) => (
          <Button variant="default" disabled={disabled} loading={accept.isPending} onClick={open}>
            Take the new key
          </Button>
        )}
      >
        From now on only <code className="mono">{shown}</code> is taken. Rows and passwords go to whoever has that key.
      </Confirm>
    </Alert>
  );
}
