import { isBigint, NORMALIZERS } from '../../../../cells/normalizers.ts';
import type { LogicalType } from '../../../../contract/connector.ts';
import { DataError } from '../../../../contract/errors.ts';
import { momentOf } from './date-styles.ts';
import { unescaped } from './unescaped.ts';
import type { OpenSheet } from './workbook.ts';

/** A value and the type that holds it. `error`: of a formula that failed, such as `#N/A`, or was never calculated. */
export interface SheetValue {
  type: LogicalType | 'error';
  text: string;
}

/** A row with at least one value. */
export interface SheetRow {
  /** From 1. */
  number: number;
  /** By column. Cells without a value are absent. */
  values: (SheetValue | undefined)[];
}

/** Of a formula in a message. */
const MAX_SHOWN = 60;

/** The limit of the format. */
const MAX_COLUMNS = 16_384;

/** The rows with values, in pieces. */
export async function* sheetRows(sheet: OpenSheet): AsyncGenerator<SheetRow[]> {
  const reader = new RowReader(sheet);
  for await (const _ of sheet.parse(reader)) {
    const rows = reader.take();
    if (rows.length > 0) yield rows;
  }
}

class RowReader {
  #rows: SheetRow[] = [];
  #row: SheetRow = { number: 0, values: [] };
  #column = -1;
  #cell: { kind: string; style: number } = { kind: 'n', style: 0 };
  #inText = false;
  #inFormula = false;
  #formula: string | null = null;
  #phonetic = false;
  #text = '';

  constructor(private readonly sheet: OpenSheet) {}

  take(): SheetRow[] {
    const rows = this.#rows;
    this.#rows = [];
    return rows;
  }

  open = (name: string, attributes: Record<string, string>): void => {
    if (name === 'c') this.#beginCell(attributes);
    else if (name === 'v' || name === 't') this.#inText = !this.#phonetic;
    else if (name === 'rPh') this.#phonetic = true;
    else if (name === 'f') [this.#inFormula, this.#formula] = [true, ''];
    else if (name === 'row') {
      const { r } = attributes;
      this.#row = { number: r === undefined ? this.#row.number + 1 : Number(r), values: [] };
      this.#column = -1;
    }
  };

  text = (piece: string): void => {
    if (this.#inText) this.#text += piece;
    else if (this.#inFormula) this.#formula += piece;
  };

  close = (name: string): void => {
    if (name === 'v' || name === 't') this.#inText = false;
    else if (name === 'rPh') this.#phonetic = false;
    else if (name === 'f') this.#inFormula = false;
    else if (name === 'c') this.#endCell();
    else if (name === 'row' && this.#row.values.length > 0) this.#rows.push(this.#row);
  };

  #beginCell({ r, t = 'n', s = '0' }: Record<string, string>): void {
    this.#column = r === undefined ? this.#column + 1 : columnOf(r);
    if (this.#column < 0 || this.#column >= MAX_COLUMNS) {
      throw new DataError('malformed_xlsx', `${this.sheet.place}, row ${this.#row.number}: "${r}" is not a cell`);
    }
    this.#cell = { kind: t, style: Number(s) };
    [this.#text, this.#formula] = ['', null];
  }

  #endCell(): void {
    const value = this.#text === '' ? this.#withoutResult() : this.#value(this.#text);
    if (value && value.text !== '') this.#row.values[this.#column] = value;
  }

  /** Libraries write formulas that a program for spreadsheets has to calculate. An empty text has the kind `str`. */
  #withoutResult(): SheetValue | undefined {
    if (this.#formula === null || this.#cell.kind === 'str') return undefined;
    return { type: 'error', text: `=${this.#formula.slice(0, MAX_SHOWN) || '…'}` };
  }

  #value(text: string): SheetValue {
    switch (this.#cell.kind) {
      case 's': {
        const shared = this.sheet.texts.at(Number(text));
        if (shared === undefined) throw this.#malformed(`text ${text} does not exist`);
        return { type: 'string', text: shared };
      }
      case 'str':
      case 'inlineStr':
        return { type: 'string', text: unescaped(text) };
      case 'b':
        return { type: 'boolean', text: text === '1' || text === 'true' ? 'true' : 'false' };
      case 'e':
        return { type: 'error', text };
      case 'd':
        return isoValue(text);
      default:
        return this.#number(text);
    }
  }

  #number(text: string): SheetValue {
    const number = Number(text);
    if (!Number.isFinite(number)) throw this.#malformed(`"${text.slice(0, 100)}" is not a number`);
    const { styles, from1904 } = this.sheet;
    const moment = momentOf(number, styles[this.#cell.style] ?? 'number', from1904);
    if (moment) return moment;
    // Excel writes up to 17 digits of a double: the shortest text of the same double is what it shows.
    const plain = isBigint(text) ? text : String(Object.is(number, -0) ? 0 : number);
    return { type: isBigint(plain) ? 'integer' : 'number', text: plain };
  }

  #malformed = (what: string) =>
    new DataError('malformed_xlsx', `${this.sheet.place}, cell ${cellName(this.#column, this.#row.number)}: ${what}`);
}

function isoValue(text: string): SheetValue {
  for (const type of ['date', 'timestamp', 'timestamp_tz'] as const) {
    const normal = NORMALIZERS[type]?.(text);
    if (normal !== undefined) return { type, text: normal };
  }
  return { type: 'string', text };
}

/** `BC12` to 54; -1 if it is no cell. */
function columnOf(reference: string): number {
  let column = 0;
  for (let at = 0; at < reference.length; at++) {
    const letter = reference.charCodeAt(at) - 64;
    if (letter < 1 || letter > 26) break;
    column = column * 26 + letter;
  }
  return column - 1;
}

/** `BC12` */
export function cellName(column: number, row: number): string {
  let letters = '';
  for (let left = column + 1; left > 0; left = Math.floor((left - 1) / 26)) {
    letters = String.fromCharCode(65 + ((left - 1) % 26)) + letters;
  }
  return `${letters}${row}`;
}
