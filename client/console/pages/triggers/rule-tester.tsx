import { Button, NumberInput, SegmentedControl, Select, Textarea } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type RouterInputs, trpc } from '../../api.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { formatCount } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { Section } from '../../components/page.tsx';
import { type Evaluation, useEvaluation } from './use-evaluation.ts';
import type { Language } from '../../answers.ts';

type Request = Exclude<RouterInputs['automation']['evaluateRule'], void>;
type Kind = NonNullable<Request['event_type']>;
type Against = 'past' | 'event';

/** Tests the rule in the form against past events or a sample event, without taking any action. */
export function RuleTester({ language, rule }: { language: Language; rule: string }) {
  const [against, setAgainst] = useState<Against>('past');
  const [limit, setLimit] = useState(100);
  const [kind, setKind] = useState('');
  const [text, setText] = useState(() => sampleOf(language, 'connection_failed'));
  const event = parsed(text);
  const request: Request | null =
    rule.trim() === ''
      ? null
      : against === 'past'
        ? { rule, limit, ...(kind !== '' && { event_type: kind as Kind }) }
        : event && { rule, event };
  const result = useEvaluation(request);
  return (
    <Section title="Test rule" lead="Test against past events or a sample event. No action is taken.">
      <div className="stack">
        <SegmentedControl
          className="fit"
          aria-label="Test against"
          data={[
            { value: 'past', label: 'Past events' },
            { value: 'event', label: 'Sample event' },
          ]}
          value={against}
          onChange={setAgainst}
        />
        {against === 'past' ? (
          <div className="fields">
            <NumberInput
              label="Number of latest events"
              min={1}
              max={200}
              value={limit}
              onChange={(value) => setLimit(Math.min(200, Math.max(1, Number(value) || 1)))}
            />
            <Select
              label="Event type"
              data={[{ value: '', label: 'All event types' }, ...language.kinds.map((one) => one.event)]}
              searchable
              value={kind}
              onChange={(value) => setKind(value ?? '')}
            />
          </div>
        ) : (
          <>
            <Select
              className="fit"
              label="Sample"
              data={language.kinds.map((one) => one.event)}
              searchable
              value={typeof event?.event === 'string' ? event.event : null}
              onChange={(value) => value && setText(sampleOf(language, value))}
            />
            <Textarea
              label="Event"
              classNames={{ input: 'mono' }}
              autosize
              minRows={5}
              maxRows={16}
              spellCheck={false}
              value={text}
              error={event === null ? 'Enter a JSON object, such as {"event": "connection_failed"}' : null}
              onChange={(change) => setText(change.currentTarget.value)}
            />
          </>
        )}
        <div role="status">{request && result.data && <Result found={result.data} against={against} />}</div>
      </div>
    </Section>
  );
}

const sampleOf = (language: Language, kind: string) =>
  JSON.stringify(language.kinds.find(({ event }) => event === kind)?.sample ?? {}, null, 2);

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function Result({ found, against }: { found: Evaluation; against: Against }) {
  if (!found.is_valid) return <p className="dimmed">Fix the rule to test it.</p>;
  if (against === 'event') {
    return (
      <p className="verdict" data-tone={found.result ? 'good' : 'calm'}>
        <Icon name={found.result ? 'check' : 'close'} size={16} />
        {found.error ? found.error.message : found.result ? 'The event matches' : 'The event does not match'}
      </p>
    );
  }
  const ids = found.matched_event_ids ?? [];
  return (
    <>
      <p className="verdict" data-tone={ids.length > 0 ? 'good' : 'calm'}>
        <Icon name={ids.length > 0 ? 'check' : 'close'} size={16} />
        {found.evaluated_count === 0
          ? 'No events to test against yet'
          : `${ids.length} of ${formatCount(found.evaluated_count)} events match`}
      </p>
      {ids.length > 0 && <Matches ids={ids} />}
    </>
  );
}

const INITIALLY_SHOWN = 10;

/** The events that matched, which are among the latest ones. */
function Matches({ ids }: { ids: string[] }) {
  const [shown, setShown] = useState(INITIALLY_SHOWN);
  const events = useQuery(trpc.automation.listEvents.queryOptions({ limit: 1000 }));
  const matched = new Set(ids);
  const found = (events.data ?? []).filter(({ id }) => matched.has(id));
  return (
    <>
      <ul className="lines">
        {found.slice(0, shown).map((event) => (
          <li key={event.id}>
            <span className="grow">{event.summary}</span>
            <code>{event.event}</code>
            <span className="dimmed">
              <RelativeTime at={event.occurred_at} />
            </span>
          </li>
        ))}
      </ul>
      {found.length > shown && (
        <Button variant="subtle" size="xs" onClick={() => setShown(found.length)}>
          Show all {found.length}
        </Button>
      )}
    </>
  );
}
