import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { type RouterInputs, type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { Icon } from '../../components/icon.tsx';
import { useAction } from '../../use-action.ts';

interface ConsentProps {
  /** Connector and parameters as they are in the form now. */
  request: () => RouterInputs['account_connectors']['beginConsent'];
  /** Receives the id of a completed consent, with which the form is saved. */
  onCompleted: (oauth_consent_id: string) => void;
  disabled?: boolean;
}

/** Lets users sign in at the provider, so that the service obtains the tokens itself. */
export function Consent({ request, onCompleted, disabled = false }: ConsentProps) {
  const [begun, setBegun] = useState<RouterOutputs['account_connectors']['beginConsent'] | null>(null);
  const begin = useAction(trpc.account_connectors.beginConsent, { failed: null, refresh: [], after: setBegun });
  const consent = useQuery(
    trpc.account_connectors.consent.queryOptions(
      { oauth_consent_id: begun?.id ?? '' },
      {
        enabled: begun !== null,
        refetchInterval: ({ state }) => (isOpen(state.data?.status) ? 1500 : false),
      },
    ),
  );
  const status = begun === null ? undefined : consent.data?.status;
  useEffect(() => {
    if (status === 'completed' && begun) onCompleted(begun.id);
  }, [status, begun, onCompleted]);
  return (
    <div className="stack">
      <div className="form-foot">
        <Button variant="default" disabled={disabled} loading={begin.isPending} onClick={() => begin.mutate(request())}>
          Connect with the provider
        </Button>
        {begun && isOpen(status) && (
          <Button
            component="a"
            href={begun.url}
            target="_blank"
            rel="noopener noreferrer"
            leftSection={<Icon name="arrow" size={16} />}
          >
            Open the provider’s page
          </Button>
        )}
      </div>
      {begin.error && <Failure title="The consent did not begin" error={begin.error} />}
      {begun && <p role="status">{messageOf(status, consent.data?.error?.message)}</p>}
    </div>
  );
}

const isOpen = (status: string | undefined) => status === undefined || status === 'pending' || status === 'exchanging';

function messageOf(status: string | undefined, error: string | undefined): string {
  if (isOpen(status)) return 'Waiting for the provider. Its page works for ten minutes.';
  if (status === 'completed') return 'Connected. Save the settings within half an hour.';
  return error ?? 'The consent has expired. Connect again.';
}
