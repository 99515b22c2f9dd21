import type { ValueType } from './casts.ts';
import type { CellCast } from './cell-casts.ts';
import type { DeclaredType } from './value-types.ts';

/** What a destination can store of a text. */
export interface TextRules {
  /** Stores the character NUL. */
  nul: boolean;
  /** Stores half of a surrogate pair, for which UTF-8 has no bytes: as an escape of JSON. */
  surrogates?: boolean;
  /** Stores JSON as it is, without reading it. */
  unread_json?: boolean;
}

/** Databases whose texts are UTF-8 without NUL, and those whose texts are UTF-8. */
const CHECKED_TEXT: ReadonlySet<string | null> = new Set(['postgres']);
const UTF8_TEXT: ReadonlySet<string | null> = new Set(['postgres', 'duckdb', 'csv', 'fixed_width']);

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The check of a column's texts. Null: its source has none that the destination cannot store. */
export function textCheck(from: DeclaredType, to: ValueType, rules: TextRules): CellCast | null {
  if (to.type === 'json' || to.type === 'array') return jsonCheck(from, rules);
  if (to.type !== 'string') return null;
  const nul = rules.nul || CHECKED_TEXT.has(from.dialect);
  if (nul) return rules.surrogates || UTF8_TEXT.has(from.dialect) ? null : WELL_FORMED;
  return WITHOUT_NUL;
}

const wellFormed = (cell: string) => (cell.isWellFormed() ? cell : undefined);
const WELL_FORMED: CellCast = { exact: wellFormed, nearest: (cell) => cell.replace(LONE_SURROGATE, '\ufffd') };
const WITHOUT_NUL: CellCast = {
  exact: (cell) => (cell.includes('\0') ? undefined : wellFormed(cell)),
  nearest: (cell) => cell.replaceAll('\0', '').replace(LONE_SURROGATE, '\ufffd'),
};

/** A source that reads its own JSON gives nothing else. */
const JSON_SOURCES: ReadonlySet<string | null> = new Set(['postgres']);

function jsonCheck(from: DeclaredType, { unread_json }: TextRules): CellCast | null {
  if (!unread_json || JSON_SOURCES.has(from.dialect)) return null;
  return JSON_TEXT;
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const JSON_TEXT: CellCast = {
  exact: (cell) => (isJson(cell) ? cell : undefined),
  nearest: (cell) => JSON.stringify(cell),
};
