import { useQueryClient } from '@tanstack/react-query';
import { type RouterOutputs, trpc } from '../../api.ts';
import { notifyFailure, notifyTrouble } from '../../components/notices.tsx';
import { useAction } from '../../use-action.ts';

/** Tests a source or destination. One that fails is noted by the service: the page shows what it found. */
export function useLogin({ id, name }: Pick<RouterOutputs['account_connectors']['get'], 'id' | 'name'>) {
  const queries = useQueryClient();
  const login = useAction(trpc.account_connectors.login, { done: `${name} passed its test`, failed: null });
  const test = () =>
    login.mutate(
      { account_connector_id: id },
      {
        onError: (error) => {
          if (error.code === 'upstream_error') {
            void queries.invalidateQueries();
            notifyTrouble(`${name} did not pass its test`, error.message);
          } else if (error.status !== 401) notifyFailure(`${name} was not tested`, error);
        },
      },
    );
  return { test, isPending: login.isPending };
}
