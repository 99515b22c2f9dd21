/** What a segment says about one key. */
export interface Entry {
  key: string;
  /** Two words of the hash of the content. */
  content: readonly [number, number];
  /** The destination does not hold the row any more. */
  gone: boolean;
  /** The destination held the row before. */
  existed: boolean;
  /** What the destination holds of it is not known. */
  unsure: boolean;
}

const [GONE, EXISTED, UNSURE] = [1, 2, 4];
const HEADER = 13;

/** Entries as bytes: flags, content and length of the key, and the key as UTF-8. */
export function packEntries(entries: readonly Entry[]): Uint8Array {
  const keys = entries.map(({ key }) => Buffer.from(key));
  const bytes = Buffer.allocUnsafe(keys.reduce((sum, key) => sum + HEADER + key.length, 0));
  let at = 0;
  for (const [index, { content, gone, existed, unsure }] of entries.entries()) {
    const key = keys[index]!;
    bytes.writeUInt8((gone ? GONE : 0) | (existed ? EXISTED : 0) | (unsure ? UNSURE : 0), at);
    bytes.writeUInt32LE(content[0], at + 1);
    bytes.writeUInt32LE(content[1], at + 5);
    bytes.writeUInt32LE(key.length, at + 9);
    key.copy(bytes, at + HEADER);
    at += HEADER + key.length;
  }
  return bytes;
}

export function* unpackEntries(data: Uint8Array): Generator<Entry> {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const flags = bytes.readUInt8(at);
    const end = at + HEADER + bytes.readUInt32LE(at + 9);
    yield {
      key: bytes.toString('utf8', at + HEADER, end),
      content: [bytes.readUInt32LE(at + 1), bytes.readUInt32LE(at + 5)],
      gone: (flags & GONE) !== 0,
      existed: (flags & EXISTED) !== 0,
      unsure: (flags & UNSURE) !== 0,
    };
    at = end;
  }
}
