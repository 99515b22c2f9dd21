import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import { trpc } from '../../api.ts';
import type { ConnectionDraft } from './draft.ts';
import { schemaParameter } from '../account-connectors/schema-test.ts';
import { rowsOf } from './proposal.ts';
import { useTemplate } from './templates.tsx';

const POLL_MS = 1_000;
const NO_ID = '';

/** Loads what the draft selects: source, destination, and the source's streams as they would be loaded. */
export function useSelection(draft: ConnectionDraft) {
  const { source_id, destination_id } = draft;
  const source = useSide('source', source_id);
  const destination = useSide('destination', destination_id);
  const destinationConnector = useQuery(
    trpc.connectors.get.queryOptions(
      {
        connector_type: 'destination',
        connector_name: destination.data?.connector_name ?? NO_ID,
      },
      { enabled: destination.data !== undefined, staleTime: Infinity },
    ),
  );
  const sourceConnector = useQuery(
    trpc.connectors.get.queryOptions(
      { connector_type: 'source', connector_name: source.data?.connector_name ?? NO_ID },
      { enabled: source.data !== undefined, staleTime: Infinity },
    ),
  );
  const discovery = useQuery(
    trpc.account_connectors.discovery.queryOptions(
      { account_connector_id: source_id ?? NO_ID },
      {
        enabled: source_id !== null && source.data?.status === 'active',
        refetchInterval: ({ state }) => (state.data?.catalog_status === 'pending' ? POLL_MS : false),
      },
    ),
  );
  const refreshed_at = discovery.data?.catalog_refreshed_at ?? null;
  const catalog = useQuery(
    trpc.account_connectors.catalog.queryOptions(
      { account_connector_id: source_id ?? NO_ID },
      { enabled: refreshed_at !== null },
    ),
  );
  const { refetch } = catalog;
  useEffect(() => {
    if (refreshed_at !== null) void refetch();
  }, [refreshed_at, refetch]);
  const template = useTemplate(draft.template);
  const edits = (source_id !== null && draft.streams[source_id]) || NO_EDITS;
  const destination_modes = destinationConnector.data?.supported_destination_sync_modes ?? NO_MODES;
  const rows = useMemo(
    () =>
      rowsOf(catalog.data ?? [], {
        edits,
        destination: destination_modes,
        template: template && template.connection,
      }),
    [catalog.data, edits, destination_modes, template],
  );
  const selected = useMemo(() => rows.filter(({ stream }) => stream.selected), [rows]);
  return {
    draft,
    template,
    source: source_id === null ? undefined : source.data,
    destination: destination_id === null ? undefined : destination.data,
    discovery,
    catalog,
    edits,
    rows,
    selected,
    problems: useMemo(() => selected.filter(({ problem }) => problem !== null), [selected]),
    destination_modes,
    /** Empty for a destination without schemas, whatever was typed for another one. */
    destination_schema: schemaParameter(destinationConnector.data) ? draft.destination_schema.trim() : '',
    /** From a database into an application, which needs a field mapping. */
    isReverse:
      SQL.has(sourceConnector.data?.category ?? '') && APPLICATIONS.has(destinationConnector.data?.category ?? ''),
    isLoading: source.isLoading || destination.isLoading || discovery.isLoading || catalog.isLoading,
  };
}
export type Selection = ReturnType<typeof useSelection>;

const NO_EDITS = {};
const NO_MODES: never[] = [];
const SQL = new Set(['database', 'warehouse']);
const APPLICATIONS = new Set(['saas', 'ads', 'crm', 'chat', 'http']);

const useSide = (connector_type: 'source' | 'destination', id: string | null) =>
  useQuery(
    trpc.account_connectors.get.queryOptions(
      { connector_type, account_connector_id: id ?? NO_ID },
      { enabled: id !== null, retry: false },
    ),
  );
