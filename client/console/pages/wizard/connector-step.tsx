import { Button, SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { SearchField } from '../../components/search-field.tsx';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Status } from '../../components/status.tsx';
import { carriesRows, ConnectorGallery, NewConnectorForm } from '../account-connectors/new-account-connector.tsx';
import { SelectedConnector } from './selected-connector.tsx';
import type { Template } from './templates.tsx';
import type { AccountConnector as SelectedAccountConnector } from '../../answers.ts';

type AccountConnector = RouterOutputs['account_connectors']['list'][number];
type Connector = RouterOutputs['connectors']['list'][number];
type Side = 'source' | 'destination';

interface ConnectorStepProps {
  type: Side;
  selected_id: string | null;
  select: (id: string | null) => void;
  /** Settings of the connection that belong to the selected one. */
  settings?: (connector: SelectedAccountConnector) => ReactNode;
  /** The destination schema of the connection. */
  schema?: string;
  /** What the template of the draft begins with. */
  template?: Template['source'] | undefined;
}

/** Selects an existing source or destination, or creates one. */
export function ConnectorStep(props: ConnectorStepProps) {
  const { type } = props;
  const list = useQuery(trpc.account_connectors.list.queryOptions({ connector_type: type }));
  const systems = useQuery(trpc.connectors.list.queryOptions(undefined, { staleTime: Infinity }));
  const loadsRows = ({ connector_id }: AccountConnector) => {
    const system = systems.data?.find(({ id }) => id === connector_id);
    return system === undefined || carriesRows(system);
  };
  const { template } = props;
  const proposed = systems.data?.find(
    ({ connector_type, name }) => connector_type === type && name === template?.connector_name,
  );
  return (
    <QueryView query={list}>
      {(all) => (
        // The template is known a moment after the page.
        <ConnectorSelection key={proposed?.id} {...props} all={all.filter(loadsRows)} proposed={proposed} />
      )}
    </QueryView>
  );
}

function ConnectorSelection({
  type,
  all,
  selected_id,
  select,
  settings,
  schema,
  template,
  proposed,
}: ConnectorStepProps & { all: AccountConnector[]; proposed: Connector | undefined }) {
  const mayCreate = usePermission(`${type}s.create`);
  const has = (wanted: Connector) => all.some(({ connector_id }) => connector_id === wanted.id);
  const isNew = proposed !== undefined && selected_id === null && !has(proposed);
  const [mode, setMode] = useState<'existing' | 'new'>(isNew ? 'new' : 'existing');
  const [system, setSystem] = useState<Connector | null>(proposed ?? null);
  const tab = all.length === 0 ? 'new' : mode;
  const onCreated = ({ id }: { id: string }) => {
    setSystem(null);
    setMode('existing');
    select(id);
  };
  return (
    <div className="stack">
      {all.length > 0 && mayCreate && (
        <SegmentedControl
          className="fit"
          aria-label={`Existing or new ${type}`}
          data={[
            { value: 'existing', label: `Existing ${type}` },
            { value: 'new', label: `New ${type}` },
          ]}
          value={tab}
          onChange={(value) => setMode(value)}
        />
      )}
      <div className="stack" hidden={tab !== 'existing'}>
        <Existing {...{ type, all, selected_id, select }} />
        {selected_id !== null && (
          <SelectedConnector key={selected_id} type={type} id={selected_id} settings={settings} schema={schema} />
        )}
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
            Change connector
          </Button>
        )}
        {system ? (
          <NewConnectorForm
            key={system.id}
            connector={system}
            template={system.id === proposed?.id ? template : undefined}
            onCreated={onCreated}
          />
        ) : (
          <ConnectorGallery type={type} forRows onSelect={setSystem} />
        )}
      </div>
    </div>
  );
}

const SEARCHABLE_FROM = 7;

function Existing({ type, all, selected_id, select }: ConnectorStepProps & { all: AccountConnector[] }) {
  const [text, setText] = useState('');
  const wanted = text.trim().toLowerCase();
  const shown = all.filter((one) => `${one.name} ${one.connector_display_name}`.toLowerCase().includes(wanted));
  return (
    <div className="stack">
      {all.length >= SEARCHABLE_FROM && <SearchField label={`Search ${type}s`} value={text} onChange={setText} />}
      <fieldset className="bare-fieldset">
        <legend className="hidden">{type === 'source' ? 'Source' : 'Destination'}</legend>
        <div className="connector-cards wizard-selection">
          {shown.map((one) => (
            <label key={one.id} className="card connector-card" data-selected={one.id === selected_id || undefined}>
              <input
                type="radio"
                className="hidden"
                name={type}
                checked={one.id === selected_id}
                onChange={() => select(one.id)}
              />
              <span className="connector-mark" aria-hidden="true">
                {one.connector_display_name.slice(0, 2)}
              </span>
              <span className="grow">
                <b>{one.name}</b>
                <span className="dimmed">
                  {one.connector_display_name} · Tested <RelativeTime at={one.last_tested_at} never="never" />
                </span>
              </span>
              <Status value={one.status} />
            </label>
          ))}
        </div>
      </fieldset>
      {shown.length === 0 && all.length > 0 && <p className="dimmed">No {type}s match</p>}
    </div>
  );
}
