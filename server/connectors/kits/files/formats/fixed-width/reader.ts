import type { Cell } from '../../../../contract/connector.ts';
import { ConfigurationError, DataError } from '../../../../contract/errors.ts';
import type { SourceContext } from '../../settings/files.ts';
import { fixedColumnsOf } from '../../settings/fixed-width.ts';
import type { FoundFile } from '../../stores/store.ts';
import type { FileBatch, FileColumn, FileRequest } from '../format.ts';
import { lineGroups } from '../line-groups.ts';
import { inferColumns, type TextRecords, typedRows } from '../text-rows.ts';
import { cellsOf, layoutOf, LineError } from './line-cells.ts';

/** The dialect of fields of fixed width. It marks columns that can be copied as bytes. */
export const FIXED_WIDTH_DIALECT = 'fixed_width';
export const MALFORMED = 'malformed_fixed_width';

export const fixedWidthColumns = (ctx: SourceContext, file: FoundFile): Promise<FileColumn[]> =>
  inferColumns(records(ctx, file), FIXED_WIDTH_DIALECT);

export const fixedWidthRows = (ctx: SourceContext, file: FoundFile, request: FileRequest): AsyncGenerator<FileBatch> =>
  typedRows(ctx, { file, records: records(ctx, file), malformed: MALFORMED }, request);

async function* records(ctx: SourceContext, file: FoundFile): AsyncGenerator<TextRecords> {
  const { config } = ctx;
  const columns = fixedColumnsOf(config.fixed_width_columns);
  if (columns.length === 0) {
    const text = `The columns of "${file.name}" are unknown. Set the format to fixed_width and enter its columns`;
    throw new ConfigurationError('columns_missing', text);
  }
  const layout = layoutOf(columns, config);
  const header = columns.map(({ name }) => name);
  // A file without lines has the columns, too.
  yield { header, rows: [], line: 1, bytes: 0 };
  for await (const { lines, line, bytes } of lineGroups(ctx, file)) {
    const skipped = Math.min(lines.length, Math.max(0, config.skip_lines - line + 1));
    const rows: Cell[][] = [];
    for (let at = skipped; at < lines.length; at++) {
      try {
        rows.push(cellsOf(lines[at] as string, layout));
      } catch (error) {
        if (!(error instanceof LineError)) throw error;
        throw new DataError(MALFORMED, `${file.name}, line ${line + at}: ${error.message}`);
      }
    }
    yield { header, rows, line: line + skipped, bytes };
  }
}
