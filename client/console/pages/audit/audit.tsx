import { Button, Select, TextInput } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import { trpc } from '../../api.ts';
import { BASE_PATH } from '../../base-path.ts';
import { usePermission } from '../../current-user.ts';
import { Empty } from '../../components/empty.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page } from '../../components/page.tsx';
import { labelOf } from '../../components/status.tsx';
import { VIEW, withFilters } from '../../saved-views/address.ts';
import { ViewsMenu } from '../../saved-views/views-menu.tsx';
import { AuditLines } from './audit-lines.tsx';
import { VerifyButton } from './verify-button.tsx';

const KINDS = ['call', 'change', 'sign_in', 'sign_out', 'refusal', 'download', 'secret_use'];
const FILTERS = ['kind', 'actor', 'action', 'resource_id', 'from', 'to', 'request_id'];
const NO_FILTERS = Object.fromEntries([...FILTERS, VIEW].map((name) => [name, null]));
const PAGE = 50;
const MAX_LIMIT = 1000;

/** The audit log, newest first. The filters are in the address. */
export default function AuditPage() {
  const [search, setSearch] = useSearchParams();
  const mayRead = usePermission('audit.read');
  const filters = new URLSearchParams([...search].filter(([name, value]) => FILTERS.includes(name) && value !== ''));
  const actions = mayRead && (
    <div className="row">
      <VerifyButton />
      <Button variant="default" component="a" href={`${BASE_PATH}/audit_log/export?${filters.toString()}`} download>
        Export
      </Button>
    </div>
  );
  return (
    <Page title="Audit log" lead="Changes, sign-ins, refusals, downloads and uses of secrets" actions={actions}>
      {mayRead ? (
        <Entries
          filters={filters}
          setFilters={(changes) => setSearch((before) => withFilters(before, changes), { replace: true })}
        />
      ) : (
        <Empty icon="logs" title="Audit log not available">
          <p>Viewing the audit log requires the audit.read permission, which the Administrator role includes.</p>
        </Empty>
      )}
    </Page>
  );
}

interface EntriesProps {
  filters: URLSearchParams;
  setFilters: (changes: Record<string, string | null>) => void;
}

function Entries({ filters, setFilters }: EntriesProps) {
  const [limit, setLimit] = useState(PAGE);
  const entries = useQuery(
    trpc.audit.list.queryOptions(
      { ...Object.fromEntries(filters), limit },
      {
        placeholderData: keepPreviousData,
        retry: false,
      },
    ),
  );
  return (
    <>
      <FilterFields filters={filters} setFilters={(changes) => (setLimit(PAGE), setFilters(changes))} />
      <QueryView query={entries}>
        {(list) =>
          list.length === 0 ? (
            <Empty icon="search" title="No entries match">
              <Button variant="default" onClick={() => setFilters(NO_FILTERS)}>
                Clear filters
              </Button>
            </Empty>
          ) : (
            <section className="card" aria-label="Entries">
              <AuditLines entries={list} />
              {list.length === limit && limit < MAX_LIMIT && (
                <Button
                  variant="subtle"
                  fullWidth
                  loading={entries.isFetching}
                  onClick={() => setLimit(Math.min(MAX_LIMIT, limit * 2))}
                >
                  Show older entries
                </Button>
              )}
            </section>
          )
        }
      </QueryView>
    </>
  );
}

function FilterFields({ filters, setFilters }: EntriesProps) {
  const users = useQuery(trpc.users.list.queryOptions());
  const setFilter = (name: string, value: string | null) => setFilters({ [name]: value });
  const selects: [name: string, label: string, data: { value: string; label: string }[]][] = [
    ['kind', 'All kinds', KINDS.map((value) => ({ value, label: labelOf(value) }))],
    ['actor', 'All users', (users.data ?? []).map(({ id, full_name }) => ({ value: id, label: full_name }))],
  ];
  // Sent when the field is left, so that half a word is no filter.
  const texts: [name: string, label: string, type: string][] = [
    ['action', 'Action', 'text'],
    ['resource_id', 'Resource id', 'text'],
    ['from', 'From', 'date'],
    ['to', 'Before', 'date'],
  ];
  return (
    <div className="event-filters">
      {selects.map(([name, label, data]) => (
        <Select
          key={name}
          aria-label={label}
          data={[{ value: '', label }, ...data]}
          searchable={data.length > 10}
          value={filters.get(name) ?? ''}
          onChange={(value) => setFilter(name, value)}
        />
      ))}
      {texts.map(([name, label, type]) => (
        <TextInput
          key={`${name} ${filters.get(name) ?? ''}`}
          type={type}
          aria-label={label}
          placeholder={label}
          // The browser shows the form of a date in place of the label.
          {...(type === 'date' && { leftSection: <span className="dimmed">{label}</span>, leftSectionWidth: 64 })}
          defaultValue={filters.get(name) ?? ''}
          onBlur={(event) => setFilter(name, event.currentTarget.value.trim())}
          onKeyDown={(event) => event.key === 'Enter' && event.currentTarget.blur()}
        />
      ))}
      <ViewsMenu page="audit" />
    </div>
  );
}
