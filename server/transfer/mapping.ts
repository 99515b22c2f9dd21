import type { Batch, Cell } from '../connectors/contract/connector.ts';
import { fieldChange } from '../pipeline/field-mapping.ts';
import { filterTest } from '../pipeline/filter-test.ts';
import { filterChanges } from './mapping-changes.ts';
import type { PlannedColumn, TransferPlan } from '../pipeline/transfer-plan.ts';

/** The masks that need a key of the account. */
export interface MaskKeys {
  /** Keyed hash of a value, hexadecimal. */
  salted: Mask;
  /** lib/field-encryption.ts */
  encrypted: Mask;
}

/** The text that stands for a redacted value; null stays null, so that its absence is still seen. */
export const REDACTION = '***';

/**
 * Does to each row what the source could not: filters, field mappings and masks. Changes the rows in place.
 * The results are the same as a source's pushdown gives (one table of tests runs over both). `history`: the destination
 * keeps every change as a row.
 */
export function createMapper(plan: TransferPlan, keys: MaskKeys, history = false): (batch: Batch) => Batch {
  const changes = plan.columns
    .map((column, index) => ({ index, change: changeOf(column, keys) }))
    .filter((entry): entry is { index: number; change: (cell: Cell) => Cell } => entry.change !== null);
  const width = plan.columns.length;
  const tests = plan.filters.map(({ index, type, filter }) => ({ index, matches: filterTest(filter, type) }));
  const key = new Set(
    plan.columns.flatMap(({ target }, index) => (plan.primary_key.includes(target.name) ? [index] : [])),
  );
  return (given) => {
    const batch = given.changes ? filterChanges(given, { tests, key, width, history }) : given;
    const rows =
      tests.length === 0 || batch.changes
        ? batch.rows
        : batch.rows.filter((row) => tests.every(({ index, matches }) => matches(row[index] ?? null)));
    for (const row of rows) {
      for (const { index, change } of changes) row[index] = change(row[index] ?? null);
      if (row.length > width) row.length = width;
    }
    return { ...batch, rows };
  };
}

/** A value that the source has masked already is not looked into. */
function changeOf({ mapping, masking, pushed }: PlannedColumn, keys: MaskKeys): ((cell: Cell) => Cell) | null {
  const mapped = mapping && (pushed === 'none' || mapping.constant_value !== null) ? fieldChange(mapping) : null;
  const mask = mapping?.constant_value == null ? maskerOf(masking, keys) : null;
  const masked = mask && ((cell: Cell) => (cell === null ? null : mask(cell)));
  return mapped && masked ? (cell) => masked(mapped(cell)) : (mapped ?? masked);
}

/** Takes a value as text or as its UTF-8 bytes; both give the same. */
export type Mask = (cell: string | Uint8Array) => string;

export function maskerOf(masking: string, keys: MaskKeys): Mask | null {
  switch (masking) {
    case 'none':
      return null;
    case 'redact':
      return () => REDACTION;
    case 'hash_sha256':
      return (cell) => Bun.SHA256.hash(cell, 'hex');
    case 'encrypt':
      return keys.encrypted;
    default:
      return keys.salted;
  }
}
