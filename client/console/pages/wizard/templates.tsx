import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { timeZone } from '../../components/format.ts';
import { Section } from '../../components/page.tsx';
import type { DraftState } from './draft.ts';

export type Template = RouterOutputs['templates']['list'][number];

const options = () => trpc.templates.list.queryOptions(undefined, { staleTime: Infinity });

/** The template with this name; null for none. */
export function useTemplate(name: string | null): Template | null {
  const { data } = useQuery({ ...options(), enabled: name !== null });
  return data?.find((template) => template.name === name) ?? null;
}

/** Starts the draft from a template, or says what the template that it began with needs. */
export function Templates({ draft: { draft, set } }: { draft: DraftState }) {
  const template = useTemplate(draft.template);
  const { data: all = [] } = useQuery(options());
  const [isOpen, setOpen] = useState(false);
  if (template) return <Started template={template} leave={() => set({ template: null })} />;
  if (draft.source_id !== null) return null;
  const start = ({ name, connection: { schedule, destination_schema } }: Template) =>
    set({
      template: name,
      schedule: { ...schedule, cron_expression: null, timezone: timeZone() },
      destination_schema: destination_schema ?? '',
    });
  return (
    <details className="fold card" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Start from a template</summary>
      <ul className="connector-cards">
        {(isOpen ? all : []).map((one) => (
          <li key={one.name}>
            <button type="button" className="card connector-card" onClick={() => start(one)}>
              <span className="grow">
                <b>{one.title}</b>
                <span className="dimmed">{one.description}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}

const Started = ({ template: { title, needs }, leave }: { template: Template; leave: () => void }) => (
  <Section
    title={title}
    lead="Connectors, modes and schedule come from this template. You can change all of them."
    actions={
      <Button size="xs" variant="default" onClick={leave}>
        Leave template
      </Button>
    }
  >
    <p>You need:</p>
    <ul className="needs">
      {needs.map((need) => (
        <li key={need}>{need}</li>
      ))}
    </ul>
  </Section>
);
