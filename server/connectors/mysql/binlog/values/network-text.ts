export function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

export const inet4Text = (bytes: Buffer): string => bytes.join('.');

/** The longest run of two or more zero groups becomes `::`; addresses of version 4 keep their dots. */
export function inet6Text(bytes: Buffer): string {
  const isMapped = bytes.subarray(0, 10).every((byte) => byte === 0);
  if (isMapped && bytes[10] === 0xff && bytes[11] === 0xff) return `::ffff:${inet4Text(bytes.subarray(12))}`;
  if (isMapped && bytes[10] === 0 && bytes[11] === 0 && bytes.readUInt32BE(12) > 0xffff) {
    return `::${inet4Text(bytes.subarray(12))}`;
  }
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2));
  let [start, length] = [0, 1];
  for (let from = 0; from < groups.length; from++) {
    let to = from;
    while (groups[to] === 0) to++;
    if (to - from > length) [start, length] = [from, to - from];
    from = Math.max(from, to - 1);
  }
  const hex = (some: number[]) => some.map((one) => one.toString(16)).join(':');
  if (length < 2) return hex(groups);
  return `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`;
}
