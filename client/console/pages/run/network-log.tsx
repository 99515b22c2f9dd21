import { Button, SegmentedControl, Select, Switch } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Failure } from '../../components/failure.tsx';
import { BASE_PATH } from '../../base-path.ts';
import { pluralize } from '../../components/format.ts';
import { SearchField } from '../../components/search-field.tsx';
import { Icon } from '../../components/icon.tsx';
import { Section } from '../../components/page.tsx';
import { hasText, isError, type LogEntry, MAX_ENTRIES, readLog } from './log-entries.ts';
import { LogTable } from './log-table.tsx';
import { isLive, type RunProgress } from './use-run-progress.ts';

type Side = 'source' | 'destination';

interface NetworkLogProps {
  run: RunProgress['run'];
  streams: RunProgress['stream_runs'];
}

/** The recorded requests of a run's connectors, loaded on demand. */
export function NetworkLog({ run, streams }: NetworkLogProps) {
  const [isOpen, setOpen] = useState(false);
  const logged = streams.filter(({ has_network_logs: { source, destination } }) => source || destination);
  const download = `${BASE_PATH}/connections/${run.connection_id}/runs/${run.id}/network_logs`;
  return (
    <Section
      title="Network log"
      lead="Requests of the connectors. Secrets are redacted before they are stored."
      actions={
        logged.length > 0 && (
          <Button
            component="a"
            href={download}
            download
            variant="default"
            leftSection={<Icon name="destination" size={16} />}
          >
            Download
          </Button>
        )
      }
    >
      {logged.length === 0 ? (
        <p className="calm-note">
          {isLive(run.status) ? 'No requests recorded yet' : 'No requests were recorded for this run'}
        </p>
      ) : isOpen ? (
        <Log {...{ run, streams: logged }} />
      ) : (
        <Button variant="light" onClick={() => setOpen(true)} leftSection={<Icon name="logs" size={16} />}>
          View log
        </Button>
      )}
    </Section>
  );
}

function Log({ run, streams }: NetworkLogProps) {
  const [side, setSide] = useState<Side>(
    streams.some(({ has_network_logs }) => has_network_logs.source) ? 'source' : 'destination',
  );
  const [stream_run_id, setStream] = useState('');
  const [text, setText] = useState('');
  const [errorsOnly, setErrorsOnly] = useState(false);
  const log = useQuery({
    queryKey: ['network-log', run.id, side, stream_run_id],
    queryFn: ({ signal }) => readLogs({ run, streams, side, stream_run_id }, signal),
    refetchInterval: isLive(run.status) ? 5_000 : false,
  });
  const wanted = text.trim().toLowerCase();
  const shown = (log.data ?? []).filter(
    (entry) => (!errorsOnly || isError(entry)) && (wanted === '' || hasText(entry, wanted)),
  );
  return (
    <div className="stack">
      <div className="row">
        <SegmentedControl
          aria-label="Connector"
          data={[
            { value: 'source', label: 'Source' },
            { value: 'destination', label: 'Destination' },
          ]}
          value={side}
          onChange={(value) => setSide(value)}
        />
        <Select
          aria-label="Stream"
          data={[
            { value: '', label: 'All streams' },
            ...streams.map(({ id, stream_name }) => ({ value: id, label: stream_name })),
          ]}
          value={stream_run_id}
          onChange={(value) => setStream(value ?? '')}
        />
        <SearchField
          label="Filter log"
          placeholder="URL, body or error"
          icon="filter"
          isWide
          value={text}
          onChange={setText}
        />
        <Switch
          label="Errors only"
          checked={errorsOnly}
          onChange={(event) => setErrorsOnly(event.currentTarget.checked)}
        />
      </div>
      {log.error && <Failure error={log.error} retry={() => void log.refetch()} />}
      <p className="dimmed" role="status">
        {log.isPending
          ? 'Loading…'
          : `${pluralize(shown.length, 'request')}${shown.length === log.data?.length ? '' : ` of ${log.data?.length}`}`}
        {(log.data?.length ?? 0) >= MAX_ENTRIES && '. Download the log to see all requests.'}
      </p>
      {shown.length > 0 && <LogTable entries={shown} />}
    </div>
  );
}

interface LogRequest extends NetworkLogProps {
  side: Side;
  /** Empty for all streams. */
  stream_run_id: string;
}

async function readLogs({ run, streams, side, stream_run_id }: LogRequest, signal: AbortSignal): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  const wanted = streams.filter(
    ({ id, has_network_logs }) => has_network_logs[side] && [id, ''].includes(stream_run_id),
  );
  for (const { id } of wanted) {
    const key = { connection_id: run.connection_id, connection_run_id: run.id, stream_run_id: id, side };
    for await (const entry of readLog(key, signal)) {
      entries.push(entry);
      if (entries.length >= MAX_ENTRIES) break;
    }
  }
  return entries.toSorted((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp) || a.sequence - b.sequence);
}
