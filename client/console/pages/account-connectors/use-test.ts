import { useQueryClient } from '@tanstack/react-query';
import { type RouterOutputs, trpc } from '../../api.ts';
import { notify, notifyFailure, notifyProblem } from '../../components/notices.tsx';
import { useAction } from '../../use-action.ts';

type AccountConnector = RouterOutputs['account_connectors']['get'];
export type Tested = Pick<AccountConnector, 'id' | 'name' | 'connector_type'>;

const FAILED = new Set<AccountConnector['status']>(['broken', 'needs_reauth']);

/** Announces a save, which succeeds even if the test that follows it fails. */
export function notifySaved({
  name,
  status,
  status_message,
}: Pick<AccountConnector, 'name' | 'status' | 'status_message'>): void {
  if (FAILED.has(status)) notifyProblem(`${name} was saved, but its test failed`, status_message ?? '');
  else notify(`${name} saved`);
}

/** Tests a source or destination. The service stores a failure, which the page then shows. */
export function useTest({ id, name }: Pick<Tested, 'id' | 'name'>) {
  const queryClient = useQueryClient();
  const login = useAction(trpc.account_connectors.login, { done: `${name} passed its test`, failed: null });
  const run = () =>
    login.mutate(
      { account_connector_id: id },
      {
        onError: (error) => {
          if (error.code === 'upstream_error') {
            void queryClient.invalidateQueries();
            notifyProblem(`${name} failed its test`, error.message);
          } else if (error.status !== 401) notifyFailure(`${name} was not tested`, error);
        },
      },
    );
  return { run, isPending: login.isPending };
}
