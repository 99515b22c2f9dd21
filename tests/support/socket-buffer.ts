import { dlopen, FFIType, ptr } from 'bun:ffi';
import type { Server, Socket } from 'node:net';

const [SOL_SOCKET, SO_RCVBUF] = [1, 8];
/** As a line of 20 MB/s and 5 ms has it. */
const RECEIVED_BYTES = 100_000;

const libc =
  process.platform === 'linux'
    ? dlopen('libc.so.6', {
        setsockopt: {
          args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.u32],
          returns: FFIType.i32,
        },
      })
    : null;

/**
 * Keeps what has arrived at a socket and was not read yet small; those that a server accepts afterwards inherit it. Else
 * the kernel takes up to 33 MB, and a sender does not see that its line is slow. On Linux alone.
 */
export function limitReceived(one: Server | Socket): void {
  if (!libc) return;
  const fd = (one as { _handle?: { fd?: number } })._handle?.fd;
  if (fd === undefined) throw new Error('The socket is not open');
  const bytes = new Int32Array([RECEIVED_BYTES]);
  const failed = libc.symbols.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, ptr(bytes), bytes.byteLength);
  if (failed) throw new Error('The receive buffer of the socket was not changed');
}
