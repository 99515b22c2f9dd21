import { ConfigurationError } from '../../../../contract/errors.ts';
import type { SourceContext } from '../../settings/files.ts';
import type { FoundFile } from '../../stores/store.ts';
import { localName } from '../../../xml/events.ts';
import { SAMPLE_BYTES } from '../format.ts';
import { documentEvents } from './records.ts';

/** Once an element has repeated within so many characters, the rest of a document is not looked at. */
const ENOUGH_LENGTH = 4 << 20;

interface OpenElement {
  path: string;
  /** Number of its elements, by name. */
  counts: Map<string, number>;
}

/**
 * The path of the outermost element that repeats; of several at the same depth, of the one that repeats most. Null if the
 * document is only an empty root.
 * @throws ConfigurationError `record_element_unknown` if nothing repeats
 */
export async function findRecordPath(ctx: SourceContext, file: FoundFile): Promise<string | null> {
  /** By depth and path: the most elements of that name in one parent. */
  const repeated: Map<string, number>[] = [];
  const open: OpenElement[] = [{ path: '', counts: new Map() }];
  let elements = 0;
  const handlers = {
    open(written: string) {
      const [name, parent] = [localName(written), open.at(-1)!];
      const count = (parent.counts.get(name) ?? 0) + 1;
      const path = parent.path === '' ? name : `${parent.path}/${name}`;
      parent.counts.set(name, count);
      elements += 1;
      if (count > 1) {
        const known = (repeated[open.length] ??= new Map());
        known.set(path, Math.max(known.get(path) ?? 0, count));
      }
      open.push({ path, counts: new Map() });
    },
    close: () => void open.pop(),
  };
  const read = { length: 0 };
  for await (const _ of documentEvents(ctx, file, handlers, read)) {
    if (read.length > (repeated.length > 0 ? ENOUGH_LENGTH : SAMPLE_BYTES)) break;
  }
  const [outermost] = repeated.filter(Boolean);
  if (outermost) return [...outermost].reduce((best, one) => (one[1] > best[1] ? one : best))[0];
  if (elements === 1) return null;
  throw new ConfigurationError(
    'record_element_unknown',
    `${file.name}: no element repeats, so it is unknown which one is a row. Set the record element`,
  );
}
