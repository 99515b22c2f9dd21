import { Button, Menu } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useSearchParams } from 'wouter';
import { trpc } from '../api.ts';
import { Icon } from '../components/icon.tsx';
import { usePermission } from '../current-user.ts';
import { useAction } from '../use-action.ts';
import { filtersOf, hrefOf, type SavedView, VIEW } from './address.ts';
import { DeleteViewDialog, ViewDialog } from './view-dialogs.tsx';

type Dialog = 'save' | 'edit' | 'delete' | null;

const NONE: SavedView[] = [];

/** The saved views of a list: opens them, and saves the filters of the address. */
export function ViewsMenu({ page }: { page: SavedView['page'] }) {
  const [search] = useSearchParams();
  const [dialog, setDialog] = useState<Dialog>(null);
  const { data: views = NONE } = useQuery(trpc.saved_views.list.queryOptions({ page }, { staleTime: 30_000 }));
  const filters = filtersOf(search);
  const queryOf = ({ query }: SavedView) => filtersOf(new URLSearchParams(query));
  const current =
    views.find(({ id }) => id === search.get(VIEW)) ??
    views.find((view) => filters !== '' && queryOf(view) === filters);
  const isChanged = current !== undefined && queryOf(current) !== filters;
  const close = () => setDialog(null);
  return (
    <>
      <Menu position="bottom-end" shadow="md" width="17rem" withInitialFocusPlaceholder={false}>
        <Menu.Target>
          <Button
            className="views-button"
            variant="default"
            title={current?.name}
            leftSection={<Icon name="filter" size={16} />}
            rightSection={<Icon name="down" size={14} />}
          >
            {current ? (
              <>
                <span className="hidden">View: </span>
                <span className="views-name">{current.name}</span>
                {isChanged && <span className="dimmed"> · changed</span>}
              </>
            ) : (
              'Views'
            )}
          </Button>
        </Menu.Target>
        <Menu.Dropdown className="views-list">
          {views.length === 0 && <Menu.Label>Filters can be saved under a name</Menu.Label>}
          <Views label="Your views" views={views.filter((view) => !view.is_shared)} current={current} />
          <Views label="Shared views" views={views.filter((view) => view.is_shared)} current={current} />
          <Menu.Divider />
          {current && isChanged && <Changed view={current} filters={filters} />}
          <Menu.Item
            leftSection={<Icon name="add" size={16} />}
            disabled={filters === ''}
            onClick={() => setDialog('save')}
          >
            Save as a new view
          </Menu.Item>
          {current && <Editing view={current} open={setDialog} />}
        </Menu.Dropdown>
      </Menu>
      {dialog === 'save' && <ViewDialog page={page} query={filters} close={close} />}
      {dialog === 'edit' && current && <ViewDialog view={current} page={page} query={current.query} close={close} />}
      {dialog === 'delete' && current && <DeleteViewDialog view={current} close={close} />}
    </>
  );
}

function Views({ label, views, current }: { label: string; views: SavedView[]; current: SavedView | undefined }) {
  if (views.length === 0) return null;
  return (
    <>
      <Menu.Label>{label}</Menu.Label>
      {views.map((view) => (
        <Menu.Item
          key={view.id}
          component={Link}
          href={hrefOf(view)}
          title={view.name}
          aria-current={view.id === current?.id || undefined}
          leftSection={<Icon name={view.is_shared ? 'users' : 'filter'} size={16} />}
          rightSection={view.id === current?.id && <Icon name="check" size={16} />}
        >
          {view.name}
        </Menu.Item>
      ))}
    </>
  );
}

/** Whether the user may change the view: their own always. */
const useMayChange = (view: SavedView): boolean => usePermission('connections.update') || !view.is_shared;

function Changed({ view, filters }: { view: SavedView; filters: string }) {
  const mayChange = useMayChange(view);
  const overwrite = useAction(trpc.saved_views.update, {
    done: `View “${view.name}” updated`,
    failed: 'View not updated',
    refresh: [trpc.saved_views.list],
  });
  return (
    <>
      <Menu.Item
        leftSection={<Icon name="check" size={16} />}
        disabled={!mayChange || filters === ''}
        onClick={() => overwrite.mutate({ saved_view_id: view.id, query: filters })}
      >
        Update this view
      </Menu.Item>
      <Menu.Item component={Link} href={hrefOf(view)} leftSection={<Icon name="refresh" size={16} />}>
        Discard changes
      </Menu.Item>
    </>
  );
}

function Editing({ view, open }: { view: SavedView; open: (dialog: Dialog) => void }) {
  const mayChange = useMayChange(view);
  return (
    <>
      <Menu.Item leftSection={<Icon name="edit" size={16} />} disabled={!mayChange} onClick={() => open('edit')}>
        Rename or share
      </Menu.Item>
      <Menu.Item
        color="red"
        leftSection={<Icon name="trash" size={16} />}
        disabled={!mayChange}
        onClick={() => open('delete')}
      >
        Delete this view
      </Menu.Item>
    </>
  );
}
