import { Button, Checkbox } from '@mantine/core';
import { useState } from 'react';
import { compact, duration } from '../../components/format.ts';
import { Status, wordsOf } from '../../components/status.tsx';
import { type Chunk, spanOf } from './chunk-calendar.tsx';

interface ChunkTableProps {
  chunks: Chunk[];
  left: ReadonlySet<number>;
  toggle: (index: number) => void;
}

const FIRST = 24;

/** Every chunk in words: its days, whether it runs, what it takes. */
export function ChunkTable({ chunks, left, toggle }: ChunkTableProps) {
  const [isAll, setAll] = useState(false);
  const shown = isAll ? chunks : chunks.slice(0, FIRST);
  return (
    <div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <div className="table-frame" tabIndex={0} role="region" aria-label="Chunks">
        <table className="table compact">
          <thead>
            <tr>
              <th>Chunk</th>
              <th>Days</th>
              <th>State</th>
              <th className="end">Rows, about</th>
              <th className="end">Time, about</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((chunk) => (
              <tr key={chunk.index}>
                <td>
                  <Checkbox
                    label={chunk.index + 1}
                    aria-label={`Load chunk ${chunk.index + 1}, ${spanOf(chunk)}`}
                    checked={chunk.action === 'run' && !left.has(chunk.index)}
                    disabled={chunk.action === 'skip'}
                    onChange={() => toggle(chunk.index)}
                  />
                </td>
                <td className="nowrap">{spanOf(chunk)}</td>
                <td>
                  {chunk.action === 'run' ? (
                    <Status value="pending" label="to be loaded" />
                  ) : (
                    <Status value="skipped" label={`skipped: ${wordsOf(chunk.skip_reason ?? '')}`} />
                  )}
                </td>
                <td className="end number">{chunk.estimated_rows === null ? '–' : compact(chunk.estimated_rows)}</td>
                <td className="end number">{duration(chunk.estimated_duration_ms)}</td>
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
