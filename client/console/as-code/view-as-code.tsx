import { Button, Modal, SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { trpc } from '../api.ts';
import { CopyBlock } from '../components/copy-block.tsx';
import { Icon } from '../components/icon.tsx';
import { QueryView } from '../components/query-view.tsx';
import type { CodeItem, SampleLanguage } from './samples.ts';

const LANGUAGES: { value: SampleLanguage; label: string }[] = [
  { value: 'yaml', label: 'YAML' },
  { value: 'cli', label: 'CLI' },
  { value: 'curl', label: 'curl' },
  { value: 'typescript', label: 'TypeScript' },
];

/** Shows how to create the item again by a file, the command line or the API. */
export function ViewAsCode(props: CodeItem) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button variant="default" leftSection={<Icon name="logs" size={16} />} onClick={() => setOpen(true)}>
        View as code
      </Button>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title={`${props.item.name} as code`} size="xl">
        {isOpen && <Samples {...props} />}
      </Modal>
    </>
  );
}

function Samples(one: CodeItem) {
  const [language, setLanguage] = useState<SampleLanguage>('yaml');
  const connectors = useQuery(trpc.connectors.list.queryOptions(undefined, { staleTime: Infinity }));
  const sides = useQuery(trpc.account_connectors.list.queryOptions({}, { enabled: one.kind === 'trigger' }));
  const connections = useQuery(trpc.connections.summaries.queryOptions({}, { enabled: one.kind === 'trigger' }));
  const nameOf = (id: unknown) =>
    [...(sides.data ?? []), ...(connections.data ?? [])].find((other) => other.id === id)?.name;
  const isComplete = one.kind !== 'trigger' || (sides.data !== undefined && connections.data !== undefined);
  const known = { connectors: connectors.data ?? [], nameOf };
  const samples = useQuery({
    queryKey: ['samples', one, known.connectors.length],
    // The YAML library is loaded with its first use.
    queryFn: async () => (await import('./samples.ts')).samplesOf(one, known),
    enabled: connectors.data !== undefined && isComplete,
    staleTime: Infinity,
  });
  return (
    <div className="stack">
      <SegmentedControl
        className="fit"
        aria-label="Language"
        data={LANGUAGES}
        value={language}
        onChange={(value) => setLanguage(value)}
      />
      <QueryView query={samples}>
        {(all) => <CopyBlock label="Secrets are variables of the environment" text={all[language]} />}
      </QueryView>
    </div>
  );
}
