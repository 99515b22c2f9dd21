import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useParams, useSearchParams } from 'wouter';
import { ask, type Output } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page } from '../../components/page.tsx';
import { refusedField } from '../../refused-field.ts';
import { useOrder } from '../../use-action.ts';
import { Decision } from './decision.tsx';
import { Launched } from './launched.tsx';
import { initialPlan, parametersOf, type PlanDraft, PlanForm } from './plan-form.tsx';

export type Plan = Output<'runs.preview'>;

/** A custom run: what it should do, what that would mean, and once it is launched how far it is. */
export default function PlanPage() {
  const { connection_id = '' } = useParams();
  const connection = useQuery(ask('connections.get', { connection_id }));
  const options = useQuery({ ...ask('runs.splitOptions'), staleTime: Infinity });
  return (
    <Loaded query={connection}>
      {(data) => (
        <Loaded query={options}>
          {(offered) => <Planner key={connection_id} connection={data} options={offered} />}
        </Loaded>
      )}
    </Loaded>
  );
}

interface PlannerProps {
  connection: Output<'connections.get'>;
  options: Output<'runs.splitOptions'>;
}

function Planner({ connection, options }: PlannerProps) {
  const [search, setSearch] = useSearchParams();
  const launched = search.get('plan');
  const [draft, setDraft] = useState<PlanDraft>(initialPlan);
  const [plan, setPlan] = useState<{ of: PlanDraft; decision: Plan } | null>(null);
  const preview = useOrder('runs.preview', { failed: null, refresh: [] });
  const ask_plan = () =>
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
            onSubmit={ask_plan}
          />
          {preview.error && <Failure title="This cannot be planned" error={preview.error} />}
          {plan && (
            <Decision
              key={plan.decision.plan_id}
              connection={connection}
              plan={plan.decision}
              isStale={plan.of !== draft}
              again={ask_plan}
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
