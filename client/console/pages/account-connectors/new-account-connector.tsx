import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useLocation } from 'wouter';
import { type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { SearchField } from '../../components/search-field.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { NameField } from '../../components/name-field.tsx';
import { Page, Section } from '../../components/page.tsx';
import { TunnelFields } from '../../ssh-tunnel/tunnel-fields.tsx';
import { useTunnelForm } from '../../ssh-tunnel/use-tunnel-form.ts';
import { checkFields } from '../../parameter-form/check-fields.ts';
import { ParameterForm } from '../../parameter-form/parameter-form.tsx';
import { useParameterForm } from '../../parameter-form/use-parameter-form.ts';
import { useAction } from '../../use-action.ts';
import { AddConnector } from './add-connector.tsx';
import { ConnectionString } from './connection-string.tsx';
import { ConnectorHelp } from './connector-help.tsx';
import { ConnectorMark } from './connector-mark.tsx';
import { Consent } from './consent.tsx';
import { OpenApiDraft } from './openapi-draft.tsx';
import { UpdateConnector } from './update-connector.tsx';
import { notifySaved } from './use-test.ts';

type Connector = RouterOutputs['connectors']['list'][number];

/** A new source or destination: select a connector, then enter its parameters. Creating it tests it. */
export default function NewAccountConnectorPage() {
  const [location, navigate] = useLocation();
  const type = location.startsWith('/console/sources') ? 'source' : 'destination';
  const [selected, setSelected] = useState<Connector | null>(null);
  return (
    <Page
      title={selected ? `New ${type}: ${selected.display_name}` : `New ${type}`}
      back={{ href: `/console/${type}s`, label: type === 'source' ? 'Sources' : 'Destinations' }}
      {...(selected && {
        actions: (
          <>
            <UpdateConnector connector_name={selected.name} onUpdated={() => setSelected(null)} />
            <Button variant="default" onClick={() => setSelected(null)}>
              Change connector
            </Button>
          </>
        ),
      })}
    >
      {selected ? (
        <NewConnectorForm
          key={selected.name}
          connector={selected}
          onCreated={({ id }) => navigate(`/console/${type}s/${id}`)}
        />
      ) : (
        <ConnectorGallery type={type} onSelect={setSelected} />
      )}
    </Page>
  );
}

/** Whether rows can be loaded from or into it. Chat connectors only take messages. */
export const carriesRows = ({
  connector_type,
  supported_destination_sync_modes: modes,
}: Pick<Connector, 'connector_type' | 'supported_destination_sync_modes'>) =>
  connector_type === 'source' || modes.length > 0;

/** All connectors of a type, with a search. */
export function ConnectorGallery({
  type,
  forRows,
  onSelect,
}: {
  type: Connector['connector_type'];
  /** Leaves out connectors that only take messages. */
  forRows?: boolean;
  onSelect: (connector: Connector) => void;
}) {
  const connectors = useQuery(trpc.connectors.list.queryOptions(undefined, { staleTime: Infinity }));
  const [text, setText] = useState('');
  const wanted = text.trim().toLowerCase();
  const fits = ({ connector_type, display_name, description, category, ...connector }: Connector) =>
    connector_type === type &&
    (forRows !== true || carriesRows({ connector_type, ...connector })) &&
    `${display_name} ${description} ${category}`.toLowerCase().includes(wanted);
  return (
    <QueryView query={connectors}>
      {(list) => (
        <div className="stack">
          <div className="row">
            <SearchField label="Search connectors" value={text} onChange={setText} />
            {type === 'source' && <AddConnector />}
          </div>
          <ul className="connector-cards">
            {list.filter(fits).map((connector) => (
              <li key={connector.id}>
                <button type="button" className="card connector-card" onClick={() => onSelect(connector)}>
                  <ConnectorMark connector={connector} />
                  <span className="grow">
                    <b>{connector.display_name}</b>
                    <span className="dimmed">{connector.description}</span>
                  </span>
                </button>
              </li>
            ))}
          </ul>
        </div>
      )}
    </QueryView>
  );
}

interface NewConnectorFormProps {
  connector: Connector;
  /** Values to begin with. */
  template?: RouterOutputs['templates']['list'][number]['source'] | undefined;
  onCreated: (created: RouterOutputs['account_connectors']['create']) => void;
}

/** Name, parameters and tunnel of a new source or destination. */
export function NewConnectorForm({ connector, template, onCreated }: NewConnectorFormProps) {
  const form = useParameterForm(connector.parameters, { initial: template?.parameters });
  const tunnel = useTunnelForm();
  const [name, setName] = useState(template?.name ?? connector.display_name);
  const [oauth_consent_id, setConsent] = useState<string | null>(null);
  const create = useAction(trpc.account_connectors.create, {
    failed: null,
    after: (created) => {
      notifySaved(created);
      onCreated(created);
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (!checkFields(event.currentTarget, [form.check, tunnel.check]) || name.trim() === '') return;
    const ssh_tunnel = tunnel.whole();
    create.mutate(
      {
        name: name.trim(),
        connector_type: connector.connector_type,
        connector_name: connector.name,
        parameters: form.changed(),
        ...(ssh_tunnel && { ssh_tunnel }),
        ...(oauth_consent_id !== null && { oauth_consent: { id: oauth_consent_id } }),
      },
      {
        onError: ({ message, context: { field: place } }) => {
          if (tunnel.refuse(place, message)) return;
          const field = typeof place === 'string' ? /^parameters\.(.+)$/.exec(place)?.[1] : undefined;
          if (field) form.refuse({ [field]: message });
        },
      },
    );
  };
  return (
    <Section title="Parameters" lead={connector.description}>
      <form className="stack" onSubmit={submit} noValidate>
        <div className="fields">
          <NameField value={name} onChange={setName} />
          <ConnectionString connector_name={connector.name} form={form} />
        </div>
        <OpenApiDraft connector_name={connector.name} form={form} />
        <ParameterForm form={form} />
        {connector.capabilities.oauth_consent && (
          <Consent
            request={() => ({
              connector_type: connector.connector_type,
              connector_name: connector.name,
              parameters: form.changed(),
            })}
            onCompleted={setConsent}
          />
        )}
        {connector.capabilities.ssh_tunnel && <TunnelFields form={tunnel} />}
        <ConnectorHelp connector={connector} values={form.values} />
        {create.error && <Failure title={`${name} was not created`} error={create.error} />}
        <div className="form-foot">
          <Button type="submit" loading={create.isPending}>
            Test and save
          </Button>
        </div>
      </form>
    </Section>
  );
}
