import { useEffect, useState } from 'react';
import { useCurrentUser } from '../../current-user.ts';
import { timeZone } from '../../components/format.ts';
import type { Schedule } from '../../schedule/schedule-fields.tsx';
import type { StreamEdits } from './proposal.ts';

/** The settings of a connection that has not been created yet. */
export interface ConnectionDraft {
  /** Name of the template that the draft began with. */
  template: string | null;
  source_id: string | null;
  destination_id: string | null;
  /** By source, so that switching to another source and back keeps the selection. */
  streams: Record<string, StreamEdits>;
  schedule: Schedule;
  /** Null until edited; the name is suggested until then. */
  name: string | null;
  destination_schema: string;
  folder: string;
  table_prefix: string;
  inexact_values: 'refuse' | 'allow';
  run_immediately: boolean;
}

const empty = (): ConnectionDraft => ({
  template: null,
  source_id: null,
  destination_id: null,
  streams: {},
  schedule: { type: 'manual', timezone: timeZone() },
  name: null,
  destination_schema: '',
  folder: '',
  table_prefix: '',
  inexact_values: 'refuse',
  run_immediately: true,
});

/** The draft, kept in session storage so that it survives navigation and reloads. It contains no secrets. */
export function useDraft() {
  const key = `new-connection:${useCurrentUser().id}`;
  const [draft, setDraft] = useState(() => read(key));
  useEffect(() => store(key, draft), [key, draft]);
  return {
    draft,
    set: (change: Partial<ConnectionDraft>) => setDraft((before) => ({ ...before, ...change })),
    clear: () => {
      setDraft(empty());
      store(key, empty());
    },
  };
}
export type DraftState = ReturnType<typeof useDraft>;

function read(key: string): ConnectionDraft {
  try {
    return { ...empty(), ...(JSON.parse(sessionStorage.getItem(key) ?? '{}') as Partial<ConnectionDraft>) };
  } catch {
    return empty();
  }
}

function store(key: string, draft: ConnectionDraft): void {
  try {
    sessionStorage.setItem(key, JSON.stringify(draft));
  } catch {
    // Storage is full or disabled. The draft then only lasts as long as the page.
  }
}
