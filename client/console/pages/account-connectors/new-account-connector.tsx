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
import { ParameterForm } from '../../parameter-form/parameter-form.tsx';
import { useParameterForm } from '../../parameter-form/use-parameter-form.ts';
import { useAction } from '../../use-action.ts';

type Connector = RouterOutputs['connectors']['list'][number];

/** A new source or destination: which system, then its parameters; it is tested as it is made. */
export default function NewAccountConnectorPage() {
  const [location, navigate] = useLocation();
  const type = location.startsWith('/console/sources') ? 'source' : 'destination';
  const [chosen, setChosen] = useState<Connector | null>(null);
  return (
    <Page
      title={chosen ? `New ${type}: ${chosen.display_name}` : `New ${type}`}
      back={{ href: `/console/${type}s`, label: type === 'source' ? 'Sources' : 'Destinations' }}
      {...(chosen && {
        actions: (
          <Button variant="default" onClick={() => setChosen(null)}>
            Another system
          </Button>
        ),
      })}
    >
      {chosen ? (
        <ConnectorMaker key={chosen.name} connector={chosen} onMade={({ id }) => navigate(`/console/${type}s/${id}`)} />
      ) : (
        <ConnectorChoice type={type} onChoose={setChosen} />
      )}
    </Page>
  );
}

/** A chat can be told of a run, but takes no rows. */
export const carriesRows = ({
  connector_type,
  supported_destination_sync_modes: modes,
}: Pick<Connector, 'connector_type' | 'supported_destination_sync_modes'>) =>
  connector_type === 'source' || modes.length > 0;

/** Every system of a kind, to be searched. */
export function ConnectorChoice({
  type,
  forRows,
  onChoose,
}: {
  type: Connector['connector_type'];
  /** Without those that carry messages alone. */
  forRows?: boolean;
  onChoose: (connector: Connector) => void;
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
          <SearchField label="Search systems" value={text} onChange={setText} />
          <ul className="connector-cards">
            {list.filter(fits).map((connector) => (
              <li key={connector.id}>
                <button type="button" className="card connector-card" onClick={() => onChoose(connector)}>
                  <span className="connector-mark" aria-hidden="true">
                    {connector.display_name.slice(0, 2)}
                  </span>
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

interface ConnectorMakerProps {
  connector: Connector;
  onMade: (made: RouterOutputs['account_connectors']['create']) => void;
}

/** Name and parameters of an account connector that is still to be made. */
export function ConnectorMaker({ connector, onMade }: ConnectorMakerProps) {
  const form = useParameterForm(connector.parameters);
  const tunnel = useTunnelForm();
  const [name, setName] = useState(connector.display_name);
  const create = useAction(trpc.account_connectors.create, { done: `${name} was made`, failed: null, after: onMade });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // Both are asked, so that every problem is shown at once.
    const isWhole = [form.check(), tunnel.check()].every(Boolean);
    if (!isWhole || name.trim() === '') return;
    const ssh_tunnel = tunnel.whole();
    create.mutate(
      {
        name: name.trim(),
        connector_type: connector.connector_type,
        connector_name: connector.name,
        parameters: form.changed(),
        ...(ssh_tunnel && { ssh_tunnel }),
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
        </div>
        <ParameterForm form={form} />
        {connector.capabilities.ssh_tunnel && <TunnelFields form={tunnel} />}
        {create.error && <Failure title="It was not made" error={create.error} />}
        <div className="form-foot">
          <Button type="submit" loading={create.isPending}>
            Test and make
          </Button>
        </div>
      </form>
    </Section>
  );
}
