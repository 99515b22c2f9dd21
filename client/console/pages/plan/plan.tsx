import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useParams, useSearchParams } from 'wouter';
import { type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page } from '../../components/page.tsx';
import { refusedField } from '../../refused-field.ts';
import { useAction } from '../../use-action.ts';
import { Decision } from './decision.tsx';
import { Launched } from './launched.tsx';
import { initialPlan, parametersOf, type PlanDraft, PlanForm } from './plan-form.tsx';

export type Plan = RouterOutputs['runs']['preview'];

/** A custom run: what it should do, what that would mean, and once it is launched how far it is. */
export default function PlanPage() {
  const { connection_id = '' } = useParams();
  const connection = useQuery(trpc.connections.get.queryOptions({ connection_id }));
  const options = useQuery(trpc.runs.splitOptions.queryOptions(undefined, { staleTime: Infinity }));
  return (
    <QueryView query={connection}>
      {(data) => (
        <QueryView query={options}>
          {(offered) => <Planner key={connection_id} connection={data} options={offered} />}
        </QueryView>
      )}
    </QueryView>
  );
}

interface PlannerProps {
  connection: RouterOutputs['connections']['get'];
  options: RouterOutputs['runs']['splitOptions'];
}

function Planner({ connection, options }: PlannerProps) {
  const [search, setSearch] = useSearchParams();
  const launched = search.get('plan');
  const [draft, setDraft] = useState<PlanDraft>(initialPlan);
  const [plan, setPlan] = useState<{ of: PlanDraft; decision: Plan } | null>(null);
  const preview = useAction(trpc.runs.preview, { failed: null, refresh: [] });
  const requestPreview = () =>
    preview.mutate(
      { connection_id: connection.id, parameters: parametersOf(draft) },
      { onSuccess: (decision) => setPlan({ of: draft, decision }) },
    );
  const refused = refusedField(preview.error);
  return (
    <Page
      title="Custom run"
      back={{ href: `/console/connections/${connection.id}`, label: connection.name }}
      lead="Load some days or streams again, or for the first time. Nothing is started before you have seen what it does."
    >
      {launched === null ? (
        <>
          <PlanForm
            draft={draft}
            onChange={setDraft}
            options={options}
            streams={connection.streams.filter(({ selected }) => selected)}
            problems={preview.error && refused ? { [refused]: preview.error.message } : {}}
            isBusy={preview.isPending}
            onSubmit={requestPreview}
          />
          {preview.error && <Failure title="This cannot be planned" error={preview.error} />}
          {plan && (
            <Decision
              key={plan.decision.plan_id}
              connection={connection}
              plan={plan.decision}
              isStale={plan.of !== draft}
              again={requestPreview}
              onLaunched={() => setSearch({ plan: plan.decision.plan_id })}
            />
          )}
        </>
      ) : (
        <Launched plan_id={launched} connection_id={connection.id} another={() => setSearch({})} />
      )}
    </Page>
  );
}
