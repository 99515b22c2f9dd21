/**
 * An LSN, exact: a number up to 2^53, which few servers pass. Both kinds compare with each other, but of the small
 * transactions of a log, making and comparing a bigint for each border takes a seventh of the time.
 */
export type Lsn = number | bigint;

export const compactLsn = (value: bigint): Lsn => (value <= Number.MAX_SAFE_INTEGER ? Number(value) : value);

/** Text of an LSN at full width, so that it sorts as text. PostgreSQL accepts this form. */
export function lsnText(value: Lsn): string {
  const digits = value.toString(16).toUpperCase().padStart(16, '0');
  return `${digits.slice(0, 8)}/${digits.slice(8)}`;
}

const LSN = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/i;

export const isLsn = (text: string) => LSN.test(text);

/** @throws Error if the text is not an LSN. Check with `isLsn` first. */
export function lsnValue(text: string): bigint {
  const [, high, low] = LSN.exec(text) ?? [];
  if (high === undefined || low === undefined) throw new Error(`"${text}" is not an LSN`);
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

/** Pads an LSN as the server prints it to full width. */
export const fullLsn = (text: string) => lsnText(lsnValue(text));
