/**
 * The columns whose wanted value differs from that of the row; undefined is not wanted. Updates store and report these
 * alone, so that a request that changes nothing leaves timestamps, events and derived state as they are.
 */
export function changedColumns<Row extends object, Wanted extends { [Key in keyof Row]?: unknown }>(
  row: Row,
  wanted: Wanted,
): Partial<Wanted> {
  const differs = ([key, value]: [string, unknown]) =>
    value !== undefined && !Bun.deepEquals(value, row[key as keyof Row]);
  return Object.fromEntries(Object.entries(wanted).filter(differs)) as Partial<Wanted>;
}

export const pick = <Row extends object, Key extends keyof Row>(row: Row, keys: readonly Key[]): Pick<Row, Key> =>
  Object.fromEntries(keys.map((key) => [key, row[key]])) as Pick<Row, Key>;

export const keysOf = <Row extends object>(row: Row) => Object.keys(row) as (keyof Row & string)[];
