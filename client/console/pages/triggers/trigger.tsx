import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useLocation, useParams } from 'wouter';
import { type RouterOutputs, trpc } from '../../api.ts';
import { useMay } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { Failure } from '../../components/failure.tsx';
import { compact } from '../../components/format.ts';
import { QueryView } from '../../components/query-view.tsx';
import { Page, Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { refusedField } from '../../refused-field.ts';
import { useAction } from '../../use-action.ts';
import { ActionsEditor } from './actions-editor.tsx';
import { CaseFields, FiringFields, GeneralFields } from './trigger-fields.tsx';
import { RuleEditor } from './rule-editor.tsx';
import { RuleTester } from './rule-tester.tsx';
import { changesOf, draftOf, newTrigger, requestOf, type Trigger, type TriggerDraft } from './trigger-draft.ts';

export type Language = RouterOutputs['automation']['ruleLanguage'];

/** One trigger, or a new one: its rule with a tester, when it fires, and what it does. */
export default function TriggerPage() {
  const { trigger_id = 'new' } = useParams();
  const language = useQuery(trpc.automation.ruleLanguage.queryOptions({}, { staleTime: Infinity }));
  const trigger = useQuery(trpc.automation.getTrigger.queryOptions({ trigger_id }, { enabled: trigger_id !== 'new' }));
  return (
    <QueryView query={language}>
      {(words) =>
        trigger_id === 'new' ? (
          <Editor key="new" trigger={null} language={words} />
        ) : (
          <QueryView query={trigger}>{(data) => <Editor key={data.id} trigger={data} language={words} />}</QueryView>
        )
      }
    </QueryView>
  );
}

function Editor({ trigger, language }: { trigger: Trigger | null; language: Language }) {
  const [stored, setStored] = useState(() => (trigger ? draftOf(trigger) : newTrigger()));
  const [draft, setDraft] = useState(stored);
  const [isChecked, setChecked] = useState(false);
  const [, navigate] = useLocation();
  const may = useMay(trigger ? 'triggers.update' : 'triggers.create');
  const set = (change: Partial<TriggerDraft>) => setDraft((before) => ({ ...before, ...change }));
  const saved = (made: Trigger) => {
    setStored(draftOf(made));
    setDraft(draftOf(made));
    if (!trigger) navigate(`/console/triggers/${made.id}`);
  };
  const options = { failed: null, after: saved };
  const create = useAction(trpc.automation.createTrigger, { done: 'Trigger created', ...options });
  const update = useAction(trpc.automation.updateTrigger, { done: 'Trigger saved', ...options });
  const { error, isPending } = trigger ? update : create;
  const changes = changesOf(draft, stored);
  const isChanged = Object.keys(changes).length > 0;
  const isSystem = trigger?.is_system ?? false;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setChecked(true);
    if (draft.name.trim() === '') return;
    if (trigger) update.mutate({ trigger_id: trigger.id, ...changes });
    else create.mutate(requestOf(draft));
  };
  const fields = { draft, set, refused: refusedField(error), message: error?.message ?? '', isChecked };
  return (
    <Page
      title={trigger?.name ?? 'New trigger'}
      mark={trigger && <Status value={trigger.enabled ? 'active' : 'paused'} label={trigger.enabled ? 'on' : 'off'} />}
      back={{ href: '/console/triggers', label: 'Triggers' }}
      lead={isSystem ? 'A system trigger: it can be switched off, and actions can be added.' : undefined}
    >
      {trigger && <Stats trigger={trigger} />}
      <form className="stack" onSubmit={submit} noValidate>
        <fieldset className="bare-fieldset stack" disabled={!may || isSystem}>
          <GeneralFields {...fields} />
          <Section title="When it matches" lead="An expression over the variables of an event.">
            <RuleEditor language={language} rule={draft.rule} onChange={(rule) => set({ rule })} />
          </Section>
        </fieldset>
        <RuleTester language={language} rule={draft.rule} />
        <fieldset className="bare-fieldset stack" disabled={!may || isSystem}>
          <FiringFields {...fields} language={language} />
        </fieldset>
        <fieldset className="bare-fieldset stack" disabled={!may}>
          <ActionsEditor
            actions={draft.actions}
            refused={fields.refused}
            message={fields.message}
            onChange={(actions) => set({ actions })}
          />
        </fieldset>
        <fieldset className="bare-fieldset stack" disabled={!may || isSystem}>
          <CaseFields {...fields} />
        </fieldset>
        {error && (
          <div ref={intoView}>
            <Failure title="The trigger was not saved" error={error} />
          </div>
        )}
        {(isChanged || !trigger) && (
          <div className="form-foot sticky-foot">
            {trigger && (
              <Button variant="default" onClick={() => setDraft(stored)}>
                Discard
              </Button>
            )}
            <Button type="submit" loading={isPending} disabled={!may || draft.actions.length === 0}>
              {trigger ? 'Save' : 'Make the trigger'}
            </Button>
          </div>
        )}
      </form>
      {trigger && !isSystem && <Deletion trigger={trigger} />}
    </Page>
  );
}

/** Chromium answers with a promise, which React would call as a clean-up. */
const intoView = (shown: HTMLElement | null): void => {
  shown?.scrollIntoView({ block: 'center' });
};

const Stats = ({ trigger }: { trigger: Trigger }) => (
  <section className="card" aria-label="What it has done">
    <dl className="facts">
      <div>
        <dt>State</dt>
        <dd>
          <Status
            value={trigger.last_error ? 'failed' : trigger.state === 'triggered' ? 'warning' : 'active'}
            label={trigger.state.replace('_', ' ')}
          />
        </dd>
      </div>
      <div>
        <dt>Fired</dt>
        <dd>
          {compact(trigger.fire_count)} times, last <RelativeTime at={trigger.last_fired_at} never="never" />
        </dd>
      </div>
      <div>
        <dt>Last looked at an event</dt>
        <dd>
          <RelativeTime at={trigger.last_evaluated_at} never="never" />
        </dd>
      </div>
      <div>
        <dt>Open cases</dt>
        <dd>{trigger.open_cases_count}</dd>
      </div>
    </dl>
    {trigger.last_error && <p className="stream-error">{trigger.last_error}</p>}
  </section>
);

function Deletion({ trigger }: { trigger: Trigger }) {
  const [, navigate] = useLocation();
  const may = useMay('triggers.delete');
  const remove = useAction(trpc.automation.deleteTrigger, {
    done: 'The trigger was deleted',
    refresh: [trpc.automation.listTriggers],
    after: () => navigate('/console/triggers'),
  });
  return (
    <Section title="Delete" lead="Its open cases are resolved.">
      <Confirm
        title={`Delete “${trigger.name}”?`}
        action="Delete the trigger"
        onConfirm={() => remove.mutate({ trigger_id: trigger.id })}
        trigger={(open) => (
          <Button color="red" variant="light" disabled={!may} loading={remove.isPending} onClick={open}>
            Delete the trigger
          </Button>
        )}
      >
        Its rule, actions and counts go for good.
      </Confirm>
    </Section>
  );
}
