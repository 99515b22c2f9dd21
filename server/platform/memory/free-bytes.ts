/** Smaller buffers may be parts of one that others use too, and cost little until they are collected. */
const MIN_BYTES = 16 * 1024;

const kept = new WeakSet<ArrayBufferLike>();

/** Something that may hold on to a part of these bytes has got it. */
export function keepBytes(bytes: Uint8Array): void {
  kept.add(bytes.buffer);
}

/**
 * Gives the memory behind bytes back at once, which nothing uses any more. Garbage collection does it too late: rows pass
 * at hundreds of MB/s, and collecting their buffers, and taking new pages for others meanwhile, costs a third of the
 * processor time of a worker that moves them.
 */
export function freeBytes({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength >= MIN_BYTES && !kept.has(buffer)) buffer.transfer(0);
}
