import { Button, Checkbox } from '@mantine/core';
import { useState } from 'react';
import { formatCompact, formatDuration } from '../../components/format.ts';
import { Status, wordsOf } from '../../components/status.tsx';
import { type Chunk, formatWindow } from './chunk-calendar.tsx';

interface ChunkTableProps {
  chunks: Chunk[];
  excluded: ReadonlySet<number>;
  toggle: (index: number) => void;
}

const INITIALLY_SHOWN = 24;

/** Every chunk with its dates, status and estimates. */
export function ChunkTable({ chunks, excluded, toggle }: ChunkTableProps) {
  const [isAll, setAll] = useState(false);
  const shown = isAll ? chunks : chunks.slice(0, INITIALLY_SHOWN);
  return (
    <div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <div className="table-frame" tabIndex={0} role="region" aria-label="Chunks">
        <table className="table compact">
          <thead>
            <tr>
              <th>Chunk</th>
              <th>Dates</th>
              <th>Status</th>
              <th className="end">Estimated rows</th>
              <th className="end">Estimated time</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((chunk) => (
              <tr key={chunk.index}>
                <td>
                  <Checkbox
                    label={chunk.index + 1}
                    aria-label={`Select chunk ${chunk.index + 1}, ${formatWindow(chunk)}`}
                    checked={chunk.action === 'run' && !excluded.has(chunk.index)}
                    disabled={chunk.action === 'skip'}
                    onChange={() => toggle(chunk.index)}
                  />
                </td>
                <td className="nowrap">{formatWindow(chunk)}</td>
                <td>
                  {chunk.action === 'run' ? (
                    <Status value="pending" label="To run" />
                  ) : (
                    <Status value="skipped" label={`Skipped: ${wordsOf(chunk.skip_reason ?? '')}`} />
                  )}
                </td>
                <td className="end number">
                  {chunk.estimated_rows === null ? '–' : formatCompact(chunk.estimated_rows)}
                </td>
                <td className="end number">{formatDuration(chunk.estimated_duration_ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {chunks.length > shown.length && (
        <Button variant="subtle" fullWidth onClick={() => setAll(true)}>
          Show all {chunks.length} chunks
        </Button>
      )}
    </div>
  );
}
