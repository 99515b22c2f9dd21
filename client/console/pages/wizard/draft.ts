import { useEffect, useState } from 'react';
import { useMe } from '../../current-user.ts';
import type { Schedule } from '../../schedule/schedule-fields.tsx';
import type { Edits } from './proposal.ts';

/** What was decided of a connection that is still to be made. */
export interface Draft {
  source_id: string | null;
  destination_id: string | null;
  /** By source: who looks at another one and comes back finds his streams as he left them. */
  streams: Record<string, Edits>;
  schedule: Schedule;
  /** Null: nobody has typed one, it is proposed. */
  name: string | null;
  destination_schema: string;
  table_prefix: string;
  run_immediately: boolean;
}

const EMPTY: Draft = {
  source_id: null,
  destination_id: null,
  streams: {},
  schedule: { type: 'manual', timezone: Intl.DateTimeFormat().resolvedOptions().timeZone },
  name: null,
  destination_schema: '',
  table_prefix: '',
  run_immediately: true,
};

/** Kept in the tab, so that neither another page nor a reload loses it; there are no secrets in it. */
export function useDraft() {
  const place = `new-connection:${useMe().id}`;
  const [draft, setDraft] = useState(() => read(place));
  useEffect(() => keep(place, draft), [place, draft]);
  return {
    draft,
    set: (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change })),
    clear: () => {
      setDraft(EMPTY);
      keep(place, EMPTY);
    },
  };
}
export type DraftState = ReturnType<typeof useDraft>;

function read(place: string): Draft {
  try {
    return { ...EMPTY, ...(JSON.parse(sessionStorage.getItem(place) ?? '{}') as Partial<Draft>) };
  } catch {
    return EMPTY;
  }
}

function keep(place: string, draft: Draft): void {
  try {
    sessionStorage.setItem(place, JSON.stringify(draft));
  } catch {
    // Full, or forbidden: then it lives as long as the page does.
  }
}
