import { Autocomplete } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { trpc } from '../../api.ts';

interface FolderFieldProps {
  value: string;
  onChange: (folder: string) => void;
  description?: string;
  /** Error from the service. */
  problem?: string | null;
}

/** The folder of a connection; proposes those in use. */
export function FolderField({ value, onChange, description, problem }: FolderFieldProps) {
  const { data: connections = [] } = useQuery(trpc.connections.summaries.queryOptions({}, { staleTime: 30_000 }));
  const folders = [...new Set(connections.flatMap(({ folder }) => folder ?? []))].toSorted();
  return (
    <Autocomplete
      label="Folder"
      placeholder="Finance/Invoices"
      description={description}
      maxLength={200}
      data={folders}
      limit={100}
      value={value}
      error={problem}
      onChange={onChange}
    />
  );
}
