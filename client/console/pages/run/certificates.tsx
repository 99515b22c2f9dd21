import { Button, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type RouterOutputs, trpc } from '../../api.ts';
import { formatCount, formatDateTime } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { usePermission } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';
import type { RunProgress } from './use-run-progress.ts';

type Verification = RouterOutputs['verifications']['get'];
type VerifiedStream = Verification['streams'][number];

const LOOK_EVERY_MS = 1000;

/** What verifications have found out since a run: what was compared, when, and the result. */
export function Certificates({ run }: Pick<RunProgress, 'run'>) {
  const { connection_id, id } = run;
  const mayRun = usePermission('connections.run');
  const list = useQuery({
    ...trpc.verifications.list.queryOptions({ connection_id }),
    refetchInterval: ({ state }) =>
      state.data?.some(({ finished_at }) => finished_at === null) ? LOOK_EVERY_MS : false,
  });
  const start = useAction(trpc.verifications.start, {
    done: 'Verification started',
    failed: 'Verification not started',
  });
  const own = list.data?.filter(({ connection_run_id }) => connection_run_id === id) ?? [];
  const [latest] = own;
  if (!latest && run.status !== 'succeeded') return null;
  return (
    <Section
      title="Verification"
      lead={latest ? leadOf(latest) : 'Compare the rows of the source with those of the destination'}
      actions={
        <Button
          size="xs"
          variant="default"
          leftSection={<Icon name="check" size={16} />}
          disabled={!mayRun || latest?.finished_at === null}
          loading={start.isPending}
          onClick={() => start.mutate({ connection_id, request: {} })}
        >
          Verify
        </Button>
      }
    >
      {latest && <Certificate verification={latest} />}
    </Section>
  );
}

const leadOf = ({ finished_at, triggered_by }: Verification) =>
  `${finished_at ? formatDateTime(finished_at) : 'Comparing'}${triggered_by ? ` · ${triggered_by.name}` : ''}`;

const Certificate = ({ verification }: { verification: Verification }) => (
  <>
    <p>
      <Status value={verification.status} /> {verification.error?.message}
    </p>
    {verification.streams.length > 0 && (
      <Table.ScrollContainer minWidth={700}>
        <Table>
          <Table.Thead>
            <Table.Tr>
              {['Stream', 'Result', 'Source rows', 'Destination rows', 'Differences', 'Source position', 'Notes'].map(
                (name) => (
                  <Table.Th key={name}>{name}</Table.Th>
                ),
              )}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {verification.streams.map((stream) => (
              <StreamRow key={stream.stream_id} stream={stream} />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    )}
  </>
);

const StreamRow = ({ stream }: { stream: VerifiedStream }) => (
  <Table.Tr>
    <Table.Td>{stream.stream_name}</Table.Td>
    <Table.Td>
      <Status value={stream.status} />
    </Table.Td>
    <Table.Td>{whenCompared(stream, formatCount(stream.source_rows))}</Table.Td>
    <Table.Td>{whenCompared(stream, formatCount(stream.destination_rows))}</Table.Td>
    <Table.Td>{whenCompared(stream, differencesOf(stream))}</Table.Td>
    <Table.Td>{stream.source_position ?? '–'}</Table.Td>
    <Table.Td>{notesOf(stream)}</Table.Td>
  </Table.Tr>
);

const whenCompared = ({ status }: VerifiedStream, text: string) => (status === 'not_compared' ? '–' : text);

const differencesOf = ({ missing, extra, different }: VerifiedStream) =>
  `${formatCount(missing)} missing, ${formatCount(extra)} extra, ${formatCount(different)} different`;

function notesOf({ reason, columns_not_compared, changed_since, repaired, is_partial }: VerifiedStream): string {
  const notes = [
    ...(reason ? [reason.message] : []),
    ...(columns_not_compared.length > 0
      ? [`Not compared: ${columns_not_compared.map(({ name }) => name).join(', ')}`]
      : []),
    ...(changed_since > 0 ? [`${formatCount(changed_since)} changed since the run`] : []),
    ...(repaired > 0 ? [`${formatCount(repaired)} repaired`] : []),
    ...(is_partial ? ['The search ended early'] : []),
  ];
  return notes.join('. ');
}
