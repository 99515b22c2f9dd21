import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { hasTunnelTrouble, TunnelState } from '../../ssh-tunnel/tunnel-state.tsx';
import type { AccountConnector } from '../account-connectors/account-connector.tsx';
import { ParametersSection } from '../account-connectors/parameters-section.tsx';
import { useLogin } from '../account-connectors/use-login.ts';

interface ChosenConnectorProps {
  type: 'source' | 'destination';
  id: string;
}

/** How the chosen side stood its last test; one that fails is put right here. */
export function ChosenConnector({ type, id }: ChosenConnectorProps) {
  const connector = useQuery(
    trpc.account_connectors.get.queryOptions({ connector_type: type, account_connector_id: id }),
  );
  return <QueryView query={connector}>{(data) => <Tested connector={data} />}</QueryView>;
}

function Tested({ connector }: { connector: AccountConnector }) {
  const { connector_type, name, status, status_message, last_test, last_tested_at } = connector;
  const mayUpdate = useMay(`${connector_type}s.update`);
  const login = useLogin(connector);
  const entry = useQuery(
    trpc.connectors.get.queryOptions({
      connector_type,
      connector_name: connector.connector_name,
      connector_id: connector.connector_id,
    }),
  );
  return (
    <Section
      title={name}
      lead={
        <>
          Tested <RelativeTime at={last_tested_at} never="never" />
        </>
      }
      actions={
        <>
          <Status value={status} />
          <Button
            variant="default"
            size="xs"
            leftSection={<Icon name="refresh" size={14} />}
            disabled={!mayUpdate}
            loading={login.isPending}
            onClick={login.test}
          >
            Test again
          </Button>
        </>
      }
    >
      <div className="stack chosen-side">
        {status_message && !hasTunnelTrouble(connector) && <p className="stream-error">{status_message}</p>}
        <TunnelState connector={connector} disabled={!mayUpdate} />
        {last_test && last_test.checks.length > 0 && (
          <ul className="checks">
            {last_test.checks.map((check) => (
              <li key={check.title} data-status={check.status}>
                <Icon
                  name={check.status === 'passed' ? 'check' : check.status === 'failed' ? 'close' : 'more'}
                  size={16}
                />
                <span>
                  {check.title}
                  <span className="hidden"> {check.status}</span>
                  {check.message && <span className="dimmed"> {check.message}</span>}
                </span>
              </li>
            ))}
          </ul>
        )}
        <details className="fold" open={status !== 'active' || status_message !== null}>
          <summary>Parameters</summary>
          <QueryView query={entry}>{(known) => <ParametersSection connector={connector} entry={known} />}</QueryView>
        </details>
      </div>
    </Section>
  );
}
