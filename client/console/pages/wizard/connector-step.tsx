import { Button, SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { SearchField } from '../../components/search-field.tsx';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Status } from '../../components/status.tsx';
import { carriesRows, ConnectorChoice, ConnectorMaker } from '../account-connectors/new-account-connector.tsx';
import { ChosenConnector } from './chosen-connector.tsx';

type AccountConnector = RouterOutputs['account_connectors']['list'][number];
type Connector = RouterOutputs['connectors']['list'][number];
type Side = 'source' | 'destination';

interface ConnectorStepProps {
  type: Side;
  chosen_id: string | null;
  choose: (id: string | null) => void;
}

/** One that there is already, or a new one: its system, its parameters, its test. */
export function ConnectorStep({ type, chosen_id, choose }: ConnectorStepProps) {
  const list = useQuery(trpc.account_connectors.list.queryOptions({ connector_type: type }));
  const systems = useQuery(trpc.connectors.list.queryOptions(undefined, { staleTime: Infinity }));
  const takesPart = ({ connector_id }: AccountConnector) => {
    const system = systems.data?.find(({ id }) => id === connector_id);
    return system === undefined || carriesRows(system);
  };
  return (
    <QueryView query={list}>
      {(all) => <Choice {...{ type, chosen_id, choose }} all={all.filter(takesPart)} />}
    </QueryView>
  );
}

function Choice({ type, all, chosen_id, choose }: ConnectorStepProps & { all: AccountConnector[] }) {
  const mayCreate = useMay(`${type}s.create`);
  const [wanted, setWanted] = useState<'existing' | 'new'>('existing');
  const [system, setSystem] = useState<Connector | null>(null);
  const tab = all.length === 0 ? 'new' : wanted;
  const made = ({ id }: { id: string }) => {
    setSystem(null);
    setWanted('existing');
    choose(id);
  };
  return (
    <div className="stack">
      {all.length > 0 && mayCreate && (
        <SegmentedControl
          className="fit"
          aria-label={`Which ${type}`}
          data={[
            { value: 'existing', label: `An existing ${type}` },
            { value: 'new', label: `A new ${type}` },
          ]}
          value={tab}
          onChange={(value) => setWanted(value)}
        />
      )}
      <div className="stack" hidden={tab !== 'existing'}>
        <Existing {...{ type, all, chosen_id, choose }} />
        {chosen_id !== null && <ChosenConnector key={chosen_id} type={type} id={chosen_id} />}
      </div>
      <div className="stack" hidden={tab !== 'new'}>
        {system && (
          <Button
            className="fit"
            variant="subtle"
            size="xs"
            leftSection={<Icon name="back" size={14} />}
            onClick={() => setSystem(null)}
          >
            Another system
          </Button>
        )}
        {system ? (
          <ConnectorMaker key={system.id} connector={system} onMade={made} />
        ) : (
          <ConnectorChoice type={type} forRows onChoose={setSystem} />
        )}
      </div>
    </div>
  );
}

const SEARCH_FROM = 7;

function Existing({ type, all, chosen_id, choose }: ConnectorStepProps & { all: AccountConnector[] }) {
  const [text, setText] = useState('');
  const wanted = text.trim().toLowerCase();
  const shown = all.filter((one) => `${one.name} ${one.connector_display_name}`.toLowerCase().includes(wanted));
  return (
    <div className="stack">
      {all.length >= SEARCH_FROM && <SearchField label={`Search ${type}s`} value={text} onChange={setText} />}
      <fieldset className="bare-fieldset">
        <legend className="hidden">{type === 'source' ? 'Source' : 'Destination'}</legend>
        <div className="connector-cards wizard-choices">
          {shown.map((one) => (
            <label key={one.id} className="card connector-card" data-chosen={one.id === chosen_id || undefined}>
              <input
                type="radio"
                className="hidden"
                name={type}
                checked={one.id === chosen_id}
                onChange={() => choose(one.id)}
              />
              <span className="connector-mark" aria-hidden="true">
                {one.connector_display_name.slice(0, 2)}
              </span>
              <span className="grow">
                <b>{one.name}</b>
                <span className="dimmed">
                  {one.connector_display_name} · tested <RelativeTime at={one.last_tested_at} never="never" />
                </span>
              </span>
              <Status value={one.status} />
            </label>
          ))}
        </div>
      </fieldset>
      {shown.length === 0 && all.length > 0 && <p className="dimmed">No {type} is called that.</p>}
    </div>
  );
}
