import { castBetween, limitsBetween } from '../../cells/casts.ts';
import { type ChangedValues, inexactValue, nullValue, shortened, ValueGate } from '../../cells/value-gate.ts';
import type { Dialect, SqlDatabase } from './dialect.ts';
import type { ExistingTable, Target } from './target.ts';

/** What the values of a stream pass before the table takes them. Null: it holds all of them as they are. */
export const gateOf = ({ holds, texts }: Dialect, target: Target): ValueGate | null =>
  ValueGate.of(
    target.columns.map((column, at) => {
      const { type: shown, replacesNull } = target.typed[at]!;
      return { column, holds: holds(shown), shown, replacesNull };
    }),
    { table: target.table, inexact: target.inexact_values ?? 'refuse', texts },
  );

/**
 * Before rows of a new table are copied into one that stays: the server rounds what a narrower column of that one
 * cannot hold, and may replace NULL. `as` is the SQL type of a cast to a column's type; null: such values are not looked at.
 * @returns the values that will change, with `inexact_values: allow`
 * @throws DataError `value_does_not_fit`, `null_value`
 */
export async function changedByCopy(
  { session, dialect }: SqlDatabase,
  target: Target,
  { from, old, as }: { from: string; old: ExistingTable; as(type: string): string | null },
): Promise<ChangedValues> {
  const found: ChangedValues = {};
  for (const { name, type } of target.typed) {
    const shown = old.types.get(dialect.names.fold(name)) ?? type;
    const column = dialect.identifier(name);
    if (old.replacesNull?.has(dialect.names.fold(name))) {
      const missing = `select 1 from ${from} where ${column} is null limit 1`;
      const { rows } = await session.query(missing, { slow: true });
      if (rows.length > 0) throw nullValue(target.table, { name, shown });
    }
    const [fresh, kept] = [dialect.holds(type), dialect.holds(shown)];
    if (castBetween(fresh, kept) !== 'lossy') continue;
    const [there, back] = [as(shown), as(type)];
    const [blanks] = limitsBetween(fresh, kept).filter((limit) => 'length' in limit);
    const cast =
      fresh.type === 'string' || there === null || back === null
        ? null
        : `cast(cast(${column} as ${there}) as ${back}) <> ${column}`;
    const changes = blanks
      ? `char_length(${column}) > greatest(${blanks.length}, char_length(rtrim(${column})))`
      : cast;
    if (changes === null) continue;
    const { rows } = await session.query(`select ${column} from ${from} where ${changes} limit 1`, { slow: true });
    if (rows.length === 0) continue;
    const first = rows[0]?.[0] ?? '';
    if (target.inexact_values !== 'allow') throw inexactValue({ table: target.table, name, shown, hint: true }, first);
    const counted = await session.query(`select count(*) from ${from} where ${changes}`, { slow: true });
    found[name] = { count: Number(counted.rows[0]?.[0]), first: shortened(first), shown };
  }
  return found;
}
