/** The same memory twice. */
interface Viewed {
  bytes: Uint8Array;
  view: DataView;
}

interface Move {
  from: Viewed;
  at: number;
  into: Viewed;
  to: number;
  length: number;
}

/** Calling into the engine costs more than copying shorter texts by words. */
const LONG_TEXT = 64;

export function moveBytes({ from, at, into, to, length }: Move): void {
  if (length >= LONG_TEXT) {
    // Without a view of the text, which costs as much again.
    Buffer.prototype.copy.call(from.bytes, into.bytes, to, at, at + length);
    return;
  }
  let done = 0;
  for (; done + 4 <= length; done += 4) into.view.setInt32(to + done, from.view.getInt32(at + done));
  for (; done < length; done += 1) into.bytes[to + done] = from.bytes[at + done]!;
}
