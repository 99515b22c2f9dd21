import { Button, Checkbox, Modal } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { useLocation } from 'wouter';
import { trpc } from '../api.ts';
import { QuestionDialog } from '../components/confirm.tsx';
import { Failure } from '../components/failure.tsx';
import { NameField } from '../components/name-field.tsx';
import { useCurrentUser, usePermission } from '../current-user.ts';
import { useAction } from '../use-action.ts';
import { hrefOf, type SavedView } from './address.ts';

interface ViewDialogProps {
  /** The view to edit; without one, `query` is saved as a new view. */
  view?: SavedView;
  page: SavedView['page'];
  query: string;
  close: () => void;
}

/** The name of a view, and who sees it. */
export function ViewDialog({ view, page, query, close }: ViewDialogProps) {
  const me = useCurrentUser();
  const mayShare = usePermission('connections.update');
  const [name, setName] = useState(view?.name ?? '');
  const [is_shared, setShared] = useState(view?.is_shared ?? false);
  const [, navigate] = useLocation();
  const options = { failed: null, refresh: [trpc.saved_views.list] };
  const create = useAction(trpc.saved_views.create, {
    ...options,
    done: 'View saved',
    after: (saved) => {
      close();
      navigate(hrefOf(saved), { replace: true });
    },
  });
  const update = useAction(trpc.saved_views.update, { ...options, done: 'View updated', after: close });
  const { error, isPending } = view ? update : create;
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (view) update.mutate({ saved_view_id: view.id, name, is_shared });
    else create.mutate({ page, name, query, is_shared });
  };
  const isOfAnother = view !== undefined && view.created_by.id !== me.id;
  return (
    <Modal opened onClose={close} title={view ? 'Edit view' : 'Save view'}>
      <form className="stack" onSubmit={save}>
        <NameField value={name} onChange={setName} isChecked={false} />
        <Checkbox
          label="Share with everyone in this account"
          description={sharing({ mayShare, view, isOfAnother })}
          disabled={!mayShare || isOfAnother}
          checked={is_shared}
          onChange={(event) => setShared(event.currentTarget.checked)}
        />
        {error && <Failure title="View not saved" error={error} />}
        <div className="form-foot">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={isPending} disabled={name.trim() === ''}>
            {view ? 'Save changes' : 'Save view'}
          </Button>
        </div>
      </form>
    </Modal>
  );
}

function sharing(of: { mayShare: boolean; view: SavedView | undefined; isOfAnother: boolean }): string | undefined {
  if (!of.mayShare) return 'Requires the connections.update permission';
  return of.view && of.isOfAnother ? `Only ${of.view.created_by.name} can stop sharing it` : undefined;
}

export function DeleteViewDialog({ view, close }: { view: SavedView; close: () => void }) {
  const remove = useAction(trpc.saved_views.delete, {
    done: 'View deleted',
    failed: null,
    refresh: [trpc.saved_views.list],
    after: close,
  });
  return (
    <QuestionDialog
      title={`Delete “${view.name}”?`}
      action="Delete view"
      running={{ isPending: remove.isPending, error: remove.error, failed: 'View not deleted' }}
      onConfirm={() => remove.mutate({ saved_view_id: view.id })}
      onClose={close}
    >
      {view.is_shared && 'Other users of this account see this view, too. '}The list keeps its current filters.
    </QuestionDialog>
  );
}
