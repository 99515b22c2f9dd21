import type { Field } from '../../contract/connector.ts';
import { factName } from '../../contract/change-fields.ts';

/** What such a field is in a SELECT; null: it is a column. */
export function changeFieldOfRow(field: Field): string | null {
  const name = factName(field);
  if (name === null) return null;
  return name === '_cdc_operation' ? "'read'::text" : name === '_cdc_lsn' ? 'null::text' : 'null::timestamptz';
}
