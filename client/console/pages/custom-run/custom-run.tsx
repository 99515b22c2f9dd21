import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useParams, useSearchParams } from 'wouter';
import { type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page } from '../../components/page.tsx';
import { refusedField } from '../../refused-field.ts';
import { useAction } from '../../use-action.ts';
import { Preview } from './preview.tsx';
import { CustomRunProgress } from './progress.tsx';
import { type CustomRunDraft, CustomRunForm, initialDraft, parametersOf } from './custom-run-form.tsx';
import type { CustomRunPlan } from '../../answers.ts';

/** A custom run: its settings, a preview of them, and the progress once it runs. */
export default function CustomRunPage() {
  const { connection_id = '' } = useParams();
  const connection = useQuery(trpc.connections.get.queryOptions({ connection_id }));
  const options = useQuery(trpc.runs.splitOptions.queryOptions(undefined, { staleTime: Infinity }));
  return (
    <QueryView query={connection}>
      {(data) => (
        <QueryView query={options}>
          {(offered) => <CustomRun key={connection_id} connection={data} options={offered} />}
        </QueryView>
      )}
    </QueryView>
  );
}

interface CustomRunProps {
  connection: RouterOutputs['connections']['get'];
  options: RouterOutputs['runs']['splitOptions'];
}

function CustomRun({ connection, options }: CustomRunProps) {
  const [search, setSearch] = useSearchParams();
  const plan_id = search.get('plan');
  const [draft, setDraft] = useState<CustomRunDraft>(initialDraft);
  const [plan, setPlan] = useState<{ draft: CustomRunDraft; result: CustomRunPlan } | null>(null);
  const preview = useAction(trpc.runs.preview, { failed: null, refresh: [] });
  const requestPreview = () =>
    preview.mutate(
      { connection_id: connection.id, parameters: parametersOf(draft) },
      { onSuccess: (result) => setPlan({ draft, result }) },
    );
  const refused = refusedField(preview.error);
  return (
    <Page
      title="Custom run"
      back={{ href: `/console/connections/${connection.id}`, label: connection.name }}
      lead="Load a range of dates or selected streams again. Nothing runs until you confirm the preview."
    >
      {plan_id === null ? (
        <>
          <CustomRunForm
            draft={draft}
            onChange={setDraft}
            options={options}
            streams={connection.streams.filter(({ selected }) => selected)}
            problems={preview.error && refused ? { [refused]: preview.error.message } : {}}
            isBusy={preview.isPending}
            onSubmit={requestPreview}
          />
          {preview.error && <Failure title="Preview failed" error={preview.error} />}
          {plan && (
            <Preview
              key={plan.result.plan_id}
              connection={connection}
              plan={plan.result}
              isStale={plan.draft !== draft}
              refresh={requestPreview}
              onStarted={() => setSearch({ plan: plan.result.plan_id })}
            />
          )}
        </>
      ) : (
        <CustomRunProgress plan_id={plan_id} connection_id={connection.id} startAnother={() => setSearch({})} />
      )}
    </Page>
  );
}
