import { Select } from '@mantine/core';
import { optionsOf } from './options.ts';

type Choice = 'refuse' | 'allow';

const CHOICES = optionsOf<Choice>({
  refuse: 'Reject their rows',
  allow: 'Store the nearest value and warn',
});

/** What happens to values that the destination cannot store exactly. */
export const InexactValues = ({ value, onChange }: { value: Choice; onChange: (value: Choice) => void }) => (
  <Select
    label="Inexact values"
    description="Values that the destination cannot store exactly"
    data={CHOICES}
    allowDeselect={false}
    value={value}
    onChange={(choice) => onChange(choice as Choice)}
  />
);
