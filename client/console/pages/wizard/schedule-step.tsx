import { Section } from '../../components/page.tsx';
import { ScheduleEditor } from '../../schedule/schedule-editor.tsx';
import type { DraftState } from './draft.ts';

export const ScheduleStep = ({ draft }: { draft: DraftState }) => (
  <Section title="Schedule" lead="You can also run the connection manually at any time.">
    <ScheduleEditor value={draft.draft.schedule} onChange={(schedule) => draft.set({ schedule })} />
  </Section>
);
