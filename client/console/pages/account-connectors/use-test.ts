import { useQueryClient } from '@tanstack/react-query';
import { type RouterOutputs, trpc } from '../../api.ts';
import { notify, notifyFailure, notifyProblem } from '../../components/notices.tsx';
import { useAction } from '../../use-action.ts';
import { findingOf, schemaTest } from './schema-test.ts';

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

/**
 * Tests a source or destination, and `schema`, where a connection creates its tables in it. The service stores a failure
 * of the former, which the page then shows.
 */
export function useTest({ id, name }: Pick<Tested, 'id' | 'name'>, schema = '') {
  const queryClient = useQueryClient();
  const login = useAction(trpc.account_connectors.login, { failed: null });
  const announce = async () => {
    const tested = schema === '' ? null : await queryClient.fetchQuery(schemaTest(id, schema));
    if (tested?.status === 'failed') notifyProblem(`${name} failed its test`, findingOf(tested) ?? '');
    else notify(`${name} passed its test`);
  };
  const run = () =>
    login.mutate(
      { account_connector_id: id },
      {
        onSuccess: () => void announce().catch((error) => notifyFailure(`${name} was not tested`, error)),
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
