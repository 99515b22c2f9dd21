import { TextInput } from '@mantine/core';

interface NameFieldProps {
  value: string;
  onChange: (name: string) => void;
  disabled?: boolean;
  /** What the service found, such as that it is taken. */
  problem?: string | null | undefined;
  /** False: that it is empty is not told yet. */
  isChecked?: boolean;
}

/** What something is called; it needs to be called something. */
export const NameField = ({ value, onChange, disabled = false, problem, isChecked = true }: NameFieldProps) => (
  <TextInput
    label="Name"
    withAsterisk
    maxLength={255}
    value={value}
    disabled={disabled}
    error={isChecked && value.trim() === '' ? 'A name is needed' : problem}
    onChange={(event) => onChange(event.currentTarget.value)}
  />
);
