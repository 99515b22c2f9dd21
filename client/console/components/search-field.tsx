import { TextInput } from '@mantine/core';
import { Icon, type IconName } from './icon.tsx';

interface SearchFieldProps {
  /** For who does not see it: what is searched. */
  label: string;
  placeholder?: string;
  icon?: IconName;
  /** Takes the room that there is. */
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
