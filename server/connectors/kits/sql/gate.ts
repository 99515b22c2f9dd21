import { castBetween } from '../../cells/casts.ts';
import { inexactValue, ValueGate } from '../../cells/value-gate.ts';
import type { Dialect, SqlDatabase } from './dialect.ts';
import type { ExistingTable, Target } from './target.ts';

/** What the values of a stream pass before the table takes them. Null: it holds all of them as they are. */
export const gateOf = ({ holds, texts }: Dialect, target: Target): ValueGate | null =>
  ValueGate.of(
    target.columns.map((column, at) => {
      const shown = target.typed[at]!.type;
      return { column, holds: holds(shown), shown };
    }),
    { table: target.table, inexact: target.inexact_values ?? 'refuse', texts },
  );

/**
 * Before rows of a new table are copied into one that stays: the server would round what a narrower column of that one
 * cannot hold. `as` is the SQL type of a cast to a column's type; null: such values are not looked at.
 * @throws DataError `value_does_not_fit`
 */
export async function assertHolds(
  { session, dialect }: SqlDatabase,
  target: Target,
  { from, old, as }: { from: string; old: ExistingTable; as(type: string): string | null },
): Promise<void> {
  if (target.inexact_values === 'allow') return;
  for (const { name, type } of target.typed) {
    const shown = old.types.get(dialect.names.fold(name)) ?? type;
    const [fresh, kept] = [dialect.holds(type), dialect.holds(shown)];
    const [there, back] = [as(shown), as(type)];
    if (there === null || back === null) continue;
    if (fresh.type === 'string' || castBetween(fresh, kept) !== 'lossy') continue;
    const column = dialect.identifier(name);
    const { rows } = await session.query(
      `select ${column} from ${from} where cast(cast(${column} as ${there}) as ${back}) <> ${column} limit 1`,
      { slow: true },
    );
    if (rows.length > 0) throw inexactValue({ table: target.table, name, shown, hint: true }, rows[0]?.[0] ?? '');
  }
}
