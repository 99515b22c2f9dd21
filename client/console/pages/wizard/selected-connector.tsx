import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { Remedy } from '../account-connectors/checks.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { hasTunnelProblem, TunnelState } from '../../ssh-tunnel/tunnel-state.tsx';
import { ParametersSection } from '../account-connectors/parameters-section.tsx';
import { schemaParameter, useSchemaTest } from '../account-connectors/schema-test.ts';
import { TestButton } from '../account-connectors/test-button.tsx';
import type { AccountConnector } from '../../answers.ts';

interface SelectedConnectorProps {
  type: 'source' | 'destination';
  id: string;
  /** Settings of the connection that the test depends on. */
  settings?: ((connector: AccountConnector) => ReactNode) | undefined;
  /** The destination schema of the connection, for the test. */
  schema?: string | undefined;
}

/** The last test of the selected source or destination, with its parameters to fix a failed one. */
export function SelectedConnector({ type, id, settings, schema = '' }: SelectedConnectorProps) {
  const connector = useQuery(
    trpc.account_connectors.get.queryOptions({ connector_type: type, account_connector_id: id }),
  );
  return (
    <QueryView query={connector}>
      {(data) => (
        <>
          {settings && <div className="fields">{settings(data)}</div>}
          <TestDetails connector={data} typed={schema} />
        </>
      )}
    </QueryView>
  );
}

function TestDetails({ connector, typed }: { connector: AccountConnector; typed: string }) {
  const { connector_type, name, status, status_message, last_test, last_tested_at } = connector;
  const mayUpdate = usePermission(`${connector_type}s.update`);
  const entry = useQuery(
    trpc.connectors.get.queryOptions({
      connector_type,
      connector_name: connector.connector_name,
      connector_id: connector.connector_id,
    }),
  );
  const wanted = schemaParameter(entry.data) ? typed.trim() : '';
  const { schema, tested } = useSchemaTest(connector, wanted);
  const shown = tested ?? last_test;
  const isInChecks = shown?.checks.some(({ message }) => message === status_message);
  return (
    <Section
      title={name}
      lead={
        tested ? (
          `Tested with the schema ${schema}`
        ) : (
          <>
            Tested <RelativeTime at={last_tested_at} never="never" />
          </>
        )
      }
      actions={
        <>
          <Status value={status} />
          <TestButton connector={connector} schema={wanted} size="xs" />
        </>
      }
    >
      <div className="stack selected-side">
        {status_message && !isInChecks && !hasTunnelProblem(connector) && (
          <p className="stream-error">{status_message}</p>
        )}
        <TunnelState connector={connector} disabled={!mayUpdate} />
        {shown && shown.checks.length > 0 && (
          <ul className="checks">
            {shown.checks.map((check) => (
              <li key={check.title} data-status={check.status}>
                <Icon
                  name={check.status === 'passed' ? 'check' : check.status === 'failed' ? 'close' : 'more'}
                  size={16}
                />
                <span>
                  {check.title}
                  <span className="hidden"> {check.status}</span>
                  {check.message && <span className="dimmed"> {check.message}</span>}
                  <Remedy check={check} />
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
