import { TextInput } from '@mantine/core';
import { Icon, type IconName } from './icon.tsx';

interface SearchFieldProps {
  /** Accessible name: what is searched. */
  label: string;
  placeholder?: string;
  icon?: IconName;
  /** Grows to fill the row. */
  isWide?: boolean;
  value: string;
  onChange: (text: string) => void;
}

export const SearchField = ({ label, placeholder = 'Search', icon = 'search', ...props }: SearchFieldProps) => (
  <TextInput
    {...(props.isWide && { className: 'grow search' })}
    type="search"
    aria-label={label}
    placeholder={placeholder}
    leftSection={<Icon name={icon} size={16} />}
    value={props.value}
    onChange={(event) => props.onChange(event.currentTarget.value)}
  />
);
