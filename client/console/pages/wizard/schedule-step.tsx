import { Section } from '../../components/page.tsx';
import { ScheduleEditor } from '../../schedule/schedule-editor.tsx';
import type { DraftState } from './draft.ts';

/** When it runs; what that means is asked of the service while one types. */
export const ScheduleStep = ({ draft }: { draft: DraftState }) => (
  <Section title="When it runs" lead="It can be run by hand at any time as well.">
    <ScheduleEditor value={draft.draft.schedule} onChange={(schedule) => draft.set({ schedule })} />
  </Section>
);
