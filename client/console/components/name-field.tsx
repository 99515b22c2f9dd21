import { TextInput } from '@mantine/core';

interface NameFieldProps {
  value: string;
  onChange: (name: string) => void;
  disabled?: boolean;
  /** Error from the service, such as a duplicate name. */
  problem?: string | null | undefined;
  /** False to not report an empty name yet. */
  isChecked?: boolean;
}

/** The required name of a resource. */
export const NameField = ({ value, onChange, disabled = false, problem, isChecked = true }: NameFieldProps) => (
  <TextInput
    label="Name"
    withAsterisk
    maxLength={255}
    value={value}
    disabled={disabled}
    error={isChecked && value.trim() === '' ? 'Enter a name' : problem}
    onChange={(event) => onChange(event.currentTarget.value)}
  />
);
