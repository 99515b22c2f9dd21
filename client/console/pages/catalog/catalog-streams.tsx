import { useState } from 'react';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { VirtualList } from '../../streams/virtual-list.tsx';
import { StreamPreview } from '../../streams/stream-preview.tsx';
import { type FoundStream, nameOf, type Source } from './find-streams.ts';
import { OverridesForm } from './overrides-form.tsx';
import type { CatalogItem } from '../../answers.ts';

const ROW_PX = 57;

/** Streams of the catalog. An open one shows its fields, its settings and its first rows. */
export function CatalogStreams({ source, found }: { source: Source; found: FoundStream[] }) {
  const [open, setOpen] = useState<string | null>(null);
  return (
    <VirtualList count={found.length} row_px={ROW_PX} keyOf={(index) => found[index]!.item.stream_id}>
      {(index) => {
        const { item, fields } = found[index]!;
        const isOpen = open === item.stream_id;
        return (
          <>
            <Line item={item} fields={fields} isOpen={isOpen} toggle={() => setOpen(isOpen ? null : item.stream_id)} />
            {isOpen && (
              <div className="stream-details">
                {item.description && <p>{item.description}</p>}
                <OverridesForm key={JSON.stringify(item.fields)} source={source} item={item} />
                <StreamPreview
                  request={{ source_id: source.id, stream: { name: item.name, namespace: item.namespace } }}
                />
              </div>
            )}
          </>
        );
      }}
    </VirtualList>
  );
}

interface LineProps extends FoundStream {
  isOpen: boolean;
  toggle: () => void;
}

const Line = ({ item, fields, isOpen, toggle }: LineProps) => (
  <div className="stream-line">
    <button type="button" className="stream-toggle" aria-expanded={isOpen} onClick={toggle}>
      <span className="grow">
        <b>{nameOf(item)}</b>
        <span className="dimmed stream-how">{fields.length > 0 ? fields.join(', ') : describe(item)}</span>
      </span>
      {item.change_status === 'added' && <span className="dimmed nowrap">New</span>}
      <Icon name="down" size={16} />
    </button>
  </div>
);

function describe(item: CatalogItem): string {
  const overridden = item.fields.filter(({ override }) => override !== null).length;
  const key = item.source_defined_primary_key?.map((path) => path.join('.')).join(', ');
  const cursor = item.default_cursor_field?.join('.');
  return [
    pluralize(item.fields.length, 'field'),
    key && `key ${key}`,
    cursor && `cursor ${cursor}`,
    overridden > 0 && pluralize(overridden, 'override'),
  ]
    .filter(Boolean)
    .join(' · ');
}
