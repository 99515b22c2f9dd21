import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useLocation, useParams } from 'wouter';
import { client, type RouterInputs, trpc } from '../../api.ts';
import { ViewAsCode } from '../../as-code/view-as-code.tsx';
import { usePermission } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { Failure } from '../../components/failure.tsx';
import { pluralize } from '../../components/format.ts';
import { QueryView } from '../../components/query-view.tsx';
import { Page, Section } from '../../components/page.tsx';
import { labelOf, Status } from '../../components/status.tsx';
import { refusedField } from '../../refused-field.ts';
import { useAction } from '../../use-action.ts';
import { ActionsEditor } from './actions-editor.tsx';
import { CaseFields, FiringFields, GeneralFields } from './trigger-fields.tsx';
import { RuleEditor } from './rule-editor.tsx';
import { RuleTester } from './rule-tester.tsx';
import {
  changesOf,
  draftOf,
  formerOf,
  newTrigger,
  requestOf,
  type Trigger,
  type TriggerDraft,
} from './trigger-draft.ts';
import type { Language } from '../../answers.ts';

/** One trigger, or a new one: rule, tester, conditions, actions and case. */
export default function TriggerPage() {
  const { trigger_id = 'new' } = useParams();
  const language = useQuery(trpc.automation.ruleLanguage.queryOptions({}, { staleTime: Infinity }));
  const trigger = useQuery(
    trpc.automation.getTrigger.queryOptions({ trigger_id }, { enabled: trigger_id !== 'new', staleTime: 0 }),
  );
  // What an earlier visit left in the cache may be older than the trigger: a list that is edited from there loses items.
  const current = trigger.isFetchedAfterMount ? trigger : { ...trigger, data: undefined };
  return (
    <QueryView query={language}>
      {(words) =>
        trigger_id === 'new' ? (
          <Editor key="new" trigger={null} language={words} />
        ) : (
          <QueryView query={current}>{(data) => <Editor key={data.id} trigger={data} language={words} />}</QueryView>
        )
      }
    </QueryView>
  );
}

function Editor({ trigger, language }: { trigger: Trigger | null; language: Language }) {
  const stored = trigger ? draftOf(trigger) : NEW;
  const [edits, setEdits] = useState<Partial<TriggerDraft>>({});
  const draft = { ...stored, ...edits };
  const [isChecked, setChecked] = useState(false);
  const [, navigate] = useLocation();
  const may = usePermission(trigger ? 'triggers.update' : 'triggers.create');
  const set = (change: Partial<TriggerDraft>) => setEdits((before) => ({ ...before, ...change }));
  const create = useAction(trpc.automation.createTrigger, {
    done: 'Trigger created',
    failed: null,
    after: ({ id }) => navigate(`/console/triggers/${id}`),
  });
  const update = useAction(trpc.automation.updateTrigger, { done: 'Trigger saved', failed: null, undo: UNDO });
  const { error, isPending } = trigger ? update : create;
  const changes = changesOf(draft, stored);
  const isChanged = Object.keys(changes).length > 0;
  const isSystem = trigger?.is_system ?? false;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setChecked(true);
    if (draft.name.trim() === '') return;
    // Called once the trigger has been read again.
    const onSuccess = () => setEdits((before) => without(before, edits));
    if (trigger) update.mutate({ trigger_id: trigger.id, ...changes }, { onSuccess });
    else create.mutate(requestOf(draft));
  };
  const fields = { draft, set, refused: refusedField(error), message: error?.message ?? '', isChecked };
  return (
    <Page
      title={trigger?.name ?? 'New trigger'}
      mark={trigger && <EnabledMark {...trigger} />}
      back={{ href: '/console/triggers', label: 'Triggers' }}
      lead={isSystem ? 'A system trigger. You can disable it and add actions.' : undefined}
      actions={trigger && !isSystem && <ViewAsCode kind="trigger" item={trigger} />}
    >
      {trigger && <Stats trigger={trigger} />}
      <form className="stack" onSubmit={submit} noValidate>
        <fieldset className="bare-fieldset stack" disabled={!may || isSystem}>
          <GeneralFields {...fields} />
          <Section title="Rule" lead="An expression that is evaluated against every event">
            <RuleEditor language={language} rule={draft.rule} onChange={(rule) => set({ rule })} />
          </Section>
        </fieldset>
        <RuleTester language={language} rule={draft.rule} />
        <fieldset className="bare-fieldset stack" disabled={!may || isSystem}>
          <FiringFields {...fields} language={language} />
        </fieldset>
        <fieldset className="bare-fieldset stack" disabled={!may}>
          <ActionsEditor
            trigger_id={trigger?.id}
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
          <div ref={scrollIntoView}>
            <Failure title="Trigger not saved" error={error} />
          </div>
        )}
        {(isChanged || !trigger) && (
          <FormFoot
            isNew={!trigger}
            isPending={isPending}
            disabled={!may || draft.actions.length === 0}
            discard={() => setEdits({})}
          />
        )}
      </form>
      {trigger && !isSystem && <Deletion trigger={trigger} />}
    </Page>
  );
}

const EnabledMark = ({ enabled }: Pick<Trigger, 'enabled'>) => (
  <Status value={enabled ? 'active' : 'paused'} label={enabled ? 'Enabled' : 'Disabled'} />
);

type Update = RouterInputs['automation']['updateTrigger'];

const UNDO = {
  input: async (sent: Update) =>
    formerOf(await client.automation.getTrigger.query({ trigger_id: sent.trigger_id }), sent),
  isCurrent: async (saved: Trigger, sent: Update) => {
    const now = await client.automation.getTrigger.query({ trigger_id: saved.id });
    return Object.keys(changesOf(draftOf(now), draftOf(saved))).every((name) => !(name in sent));
  },
};

const NEW = newTrigger();

/** The edits that were not saved: those that were added or changed while the others were sent. */
const without = (edits: Partial<TriggerDraft>, saved: Partial<TriggerDraft>): Partial<TriggerDraft> =>
  Object.fromEntries(Object.entries(edits).filter(([name, value]) => saved[name as keyof TriggerDraft] !== value));

interface FormFootProps {
  isNew: boolean;
  isPending: boolean;
  disabled: boolean;
  discard: () => void;
}

const FormFoot = ({ isNew, isPending, disabled, discard }: FormFootProps) => (
  <div className="form-foot sticky-foot">
    {!isNew && (
      <Button variant="default" onClick={discard}>
        Discard changes
      </Button>
    )}
    <Button type="submit" loading={isPending} disabled={disabled}>
      {isNew ? 'Create trigger' : 'Save changes'}
    </Button>
  </div>
);

/** In Chromium, scrollIntoView returns a promise, which React would take for a cleanup function. */
const scrollIntoView = (shown: HTMLElement | null): void => {
  shown?.scrollIntoView({ block: 'center' });
};

const Stats = ({ trigger }: { trigger: Trigger }) => (
  <section className="card" aria-label="Statistics">
    <dl className="facts">
      <div>
        <dt>Status</dt>
        <dd>
          <Status
            value={trigger.last_error ? 'failed' : trigger.state === 'triggered' ? 'warning' : 'active'}
            label={labelOf(trigger.state)}
          />
        </dd>
      </div>
      <div>
        <dt>Fired</dt>
        <dd>
          {trigger.fire_count === 0 ? (
            'Never'
          ) : (
            <>
              {pluralize(trigger.fire_count, 'time')}, last <RelativeTime at={trigger.last_fired_at} />
            </>
          )}
        </dd>
      </div>
      <div>
        <dt>Last evaluated</dt>
        <dd>
          <RelativeTime at={trigger.last_evaluated_at} never="Never" />
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
  const may = usePermission('triggers.delete');
  const remove = useAction(trpc.automation.deleteTrigger, {
    done: 'Trigger deleted',
    failed: 'Trigger not deleted',
    refresh: [trpc.automation.listTriggers],
    after: () => navigate('/console/triggers'),
  });
  return (
    <Section title="Delete" lead="Resolves its open cases">
      <Confirm
        title={`Delete “${trigger.name}”?`}
        action="Delete trigger"
        onConfirm={() => remove.mutate({ trigger_id: trigger.id })}
        trigger={(open) => (
          <Button color="red" variant="light" disabled={!may} loading={remove.isPending} onClick={open}>
            Delete trigger
          </Button>
        )}
      >
        This permanently deletes its rule, actions and statistics.
      </Confirm>
    </Section>
  );
}
