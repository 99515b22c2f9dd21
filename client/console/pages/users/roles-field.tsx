import { MultiSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { trpc } from '../../api.ts';

interface RolesFieldProps {
  value: string[];
  onChange: (role_ids: string[]) => void;
  description?: string;
}

export function RolesField({ value, onChange, description }: RolesFieldProps) {
  const roles = useQuery(trpc.roles.list.queryOptions());
  return (
    <MultiSelect
      label="Roles"
      description={description}
      placeholder={value.length === 0 ? 'Select roles' : undefined}
      data={(roles.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
      value={value}
      onChange={onChange}
      searchable
    />
  );
}
