import { Alert, Button } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { client, type RouterInputs, type RouterOutputs, trpc } from '../../api.ts';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';

type Request = RouterInputs['connections']['check'];
type Finding = RouterOutputs['connections']['check'][number];

const DEBOUNCE_MS = 400;
const SHOWN = 10;
const NONE: Finding[] = [];

/** What the service would refuse about the streams of a new connection, after a pause in typing. */
export function useFindings(request: Request | null): Finding[] {
  const [settled] = useDebouncedValue(JSON.stringify(request), DEBOUNCE_MS);
  const query = useQuery({
    queryKey: [...trpc.connections.check.mutationKey(), settled],
    enabled: settled !== 'null',
    placeholderData: keepPreviousData,
    retry: false,
    queryFn: ({ signal }): Promise<Finding[]> =>
      client.connections.check.mutate(JSON.parse(settled) as Request, { signal }),
  });
  return query.data ?? NONE;
}

export const Findings = ({ findings, edit }: { findings: Finding[]; edit: () => void }) => (
  <Alert
    color="red"
    icon={<Icon name="alert" />}
    title={`${pluralize(findings.length, 'setting')} ${findings.length === 1 ? 'needs' : 'need'} attention`}
    role="alert"
  >
    <ul>
      {findings.slice(0, SHOWN).map(({ code, message, field, stream_name }) => (
        <li key={`${field} ${code}`}>
          {stream_name !== null && <b>{stream_name}: </b>}
          {message}
        </li>
      ))}
      {findings.length > SHOWN && <li>{findings.length - SHOWN} more</li>}
    </ul>
    <Button size="xs" variant="default" onClick={edit}>
      Edit streams
    </Button>
  </Alert>
);
