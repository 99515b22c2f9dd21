import { bareName, isUnsigned } from '../connection/types.ts';

/** What CAST accepts. A FLOAT shows other digits than it holds. */
export function castType(type: string): string | null {
  if (bareName(type).endsWith('int')) return isUnsigned(type) ? 'unsigned' : 'signed';
  return /^(decimal|date|datetime|time)\b/.test(type) ? type.replace(' unsigned', '') : null;
}
