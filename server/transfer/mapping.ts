import type { Batch, Cell } from '../connectors/contract/connector.ts';
import { factName } from '../connectors/contract/change-fields.ts';
import { fieldChange } from '../pipeline/field-mapping.ts';
import { KEYLESS_MASKS, type Mask } from '../connectors/cells/masks.ts';
import { filterTest } from '../connectors/cells/filters.ts';
import { filterChanges } from './filter-changes.ts';
import type { PlannedColumn, TransferPlan } from '../pipeline/transfer-plan.ts';

/** Masks that depend on a key of the account. */
export interface MaskKeys {
  /** Keyed hash of the value, in hexadecimal. */
  salted: Mask;
  /** See platform/field-encryption.ts. */
  encrypted: Mask;
}

/**
 * Applies the filters, field mappings and masks that the source could not push down, in place. The result equals that of
 * a pushdown; one table of tests covers both. `history`: the destination keeps every change as a row.
 */
export function createMapper(plan: TransferPlan, keys: MaskKeys, history = false): (batch: Batch) => Batch {
  const changes = plan.columns
    .map((column, index) => ({ index, change: changeOf(column, keys) }))
    .filter((entry): entry is { index: number; change: (cell: Cell) => Cell } => entry.change !== null);
  const width = plan.columns.length;
  const all = plan.filters.map(({ index, field, filter }) => ({
    index,
    matches: filterTest(filter, field),
    kind: factName(field) === null ? ('tests' as const) : ('change_tests' as const),
  }));
  const { tests = [], change_tests = [] } = Object.groupBy(all, ({ kind }) => kind);
  const kept = new Set(
    plan.columns.flatMap(({ target, field }, index) =>
      plan.primary_key.includes(target.name) || factName(field) !== null ? [index] : [],
    ),
  );
  return (given) => {
    const batch = given.changes ? filterChanges(given, { tests, change_tests, kept, width, history }) : given;
    const rows =
      all.length === 0 || batch.changes
        ? batch.rows
        : batch.rows.filter((row) => all.every(({ index, matches }) => matches(row[index] ?? null)));
    for (const row of rows) {
      for (const { index, change } of changes) row[index] = change(row[index] ?? null);
      if (row.length > width) row.length = width;
    }
    return { ...batch, rows };
  };
}

/** Null: the column needs no change, or the source has already applied it. */
function changeOf({ mapping, masking, pushed }: PlannedColumn, keys: MaskKeys): ((cell: Cell) => Cell) | null {
  const mapped = mapping && (pushed === 'none' || mapping.constant_value !== null) ? fieldChange(mapping) : null;
  const mask = mapping?.constant_value == null ? maskerOf(masking, keys) : null;
  const masked = mask && ((cell: Cell) => (cell === null ? null : mask(cell)));
  return mapped && masked ? (cell) => masked(mapped(cell)) : (mapped ?? masked);
}

export function maskerOf(masking: string, keys: MaskKeys): Mask | null {
  if (masking === 'none') return null;
  return KEYLESS_MASKS[masking] ?? (masking === 'encrypt' ? keys.encrypted : keys.salted);
}
