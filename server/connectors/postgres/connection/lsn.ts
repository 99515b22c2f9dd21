/** Text of a position in the log, at its full width, so that texts sort as positions do; PostgreSQL reads it as well. */
export function lsnText(value: bigint): string {
  const digits = value.toString(16).toUpperCase().padStart(16, '0');
  return `${digits.slice(0, 8)}/${digits.slice(8)}`;
}

const LSN = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/i;

export const isLsn = (text: string) => LSN.test(text);

/** @throws Error when the text is no position: ask `isLsn` first. */
export function lsnValue(text: string): bigint {
  const [, high, low] = LSN.exec(text) ?? [];
  if (high === undefined || low === undefined) throw new Error(`"${text}" is no position in the log`);
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

/** At its full width, however the server writes it. */
export const fullLsn = (text: string) => lsnText(lsnValue(text));
