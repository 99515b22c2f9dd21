import { isUtf8 } from 'node:buffer';
import { encodeCopyText } from '../../cells/copy-text.ts';
import { ValueGate } from '../../cells/value-gate.ts';
import type { Cell, ConnectorContext, ReadRequest } from '../../contract/connector.ts';
import { decodeLines } from '../../kits/sql/copy-lines.ts';
import { decodeText } from '../connection/decode-text.ts';
import { FORM } from '../connection/row-text.ts';
import { DIALECT, formOf } from '../connection/types.ts';

const NUL = 0;

/**
 * Texts of a byte stream that UTF-8 without NUL cannot hold: refused, or changed and counted, as the request says. Rows
 * pass the same check on their way to PostgreSQL, but bytes are not looked at there.
 */
export class CopiedTexts {
  readonly #gate: ValueGate | null;

  constructor({ stream, columns, inexact_values = 'refuse' }: ReadRequest) {
    const checked = columns.map(({ field, masking }) => {
      const isText = masking === 'none' && formOf(field.type, true) === FORM.text;
      const type = isText ? ('string' as const) : field.type;
      const column = { name: field.path[0]!, type, source_type: null, dialect: DIALECT, nullable: true };
      return { column, holds: { type }, shown: 'text' };
    });
    this.#gate = ValueGate.of(checked, { table: stream.name, inexact: inexact_values, texts: { nul: false } });
  }

  /** @param lines whole ones. @throws DataError `value_does_not_fit` */
  passed(lines: Buffer): Buffer {
    // Costs next to nothing, whereas a look at each byte would be felt where the lines are written.
    if (!this.#gate || (isUtf8(lines) && !lines.includes(NUL))) return lines;
    const rows = Array.from(decodeLines(lines, decodeText)).flatMap((batch) => batch.rows);
    for (const row of rows) this.#take(row, this.#gate);
    return encodeCopyText(rows, () => {});
  }

  /** Once all of it has been read. */
  warn(ctx: Pick<ConnectorContext<unknown>, 'warn'>): void {
    this.#gate?.warn((code, message) => ctx.warn(code, message));
  }

  #take(row: Cell[], gate: ValueGate): void {
    const error = gate.take(row);
    if (error) throw error;
  }
}
