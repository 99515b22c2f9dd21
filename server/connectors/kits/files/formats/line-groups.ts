import type { SourceContext } from '../settings/files.ts';
import type { FoundFile } from '../stores/store.ts';
import { checkRecordLength, textChunks } from './file-chunks.ts';

interface LineGroup {
  /** Without their line feeds. */
  lines: string[];
  /** Number of the first line, counted from 1. */
  line: number;
  bytes: number;
}

/** The lines of a file, which end with a line feed each, as they arrive. */
export async function* lineGroups(ctx: SourceContext, file: FoundFile): AsyncGenerator<LineGroup> {
  let pending = '';
  let line = 1;
  for await (const chunk of textChunks(file, ctx.config.encoding, ctx.signal)) {
    const end = chunk.lastIndexOf('\n');
    if (end < 0) {
      // Parsed only once the line is whole: each attempt would copy all of it.
      pending += chunk;
      checkRecordLength(file, pending.length, line);
      continue;
    }
    const text = pending + chunk.slice(0, end);
    pending = chunk.slice(end + 1);
    const lines = text.split('\n');
    yield { lines, line, bytes: text.length };
    line += lines.length;
  }
  if (pending !== '') yield { lines: [pending], line, bytes: pending.length };
}
