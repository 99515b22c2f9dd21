import { expect, test } from 'bun:test';
import { PassThrough } from 'node:stream';
import { TakenSocket } from '../../server/connectors/mysql/connection/taken-socket.ts';

const FULL = 0xffffff;

function packet(payload: Buffer): Buffer {
  const header = Buffer.alloc(4);
  header.writeUIntLE(payload.length, 0, 3);
  return Buffer.concat([header, payload]);
}

/** What a command and the driver get of these bytes, in chunks of a size. A payload that begins with 0xff is the driver's. */
function received(bytes: Buffer, size: number) {
  const taken: Buffer[] = [];
  const left: Buffer[] = [];
  let waiting = 0;
  const connection = {
    stream: new PassThrough(),
    packetParser: { execute: (chunk: Buffer) => void left.push(Buffer.from(chunk)) },
    sequenceId: 0,
    addCommand: () => {},
    reset: () => {},
    destroy: () => {},
  };
  const handler = {
    take(chunk: Buffer, start: number, end: number) {
      if (chunk[start] === 0xff) return false;
      taken.push(Buffer.from(chunk.subarray(start, end)));
      return true;
    },
    // As memory that is used again: nothing may be read from it any more.
    release: (chunk: Buffer) => void chunk.fill(0xaa),
    onChunk: () => void (waiting += 1),
  };
  new TakenSocket(connection, handler);
  for (let at = 0; at < bytes.length; at += size) {
    connection.packetParser.execute(Buffer.from(bytes.subarray(at, at + size)));
  }
  return { taken, left: Buffer.concat(left), waiting };
}

const payloads = [
  Buffer.from('a'),
  Buffer.alloc(0),
  Buffer.from('a longer one'),
  Buffer.alloc(300, 7),
  Buffer.from('z'),
];
const rest = Buffer.concat([packet(Buffer.from([0xff, 1, 2])), packet(Buffer.from('for the driver'))]);

test.each([1, 2, 3, 4, 5, 7, 16, 305, 10_000])('packets in chunks of %d bytes, and what follows them', (size) => {
  const { taken, left, waiting } = received(Buffer.concat([...payloads.map(packet), rest]), size);
  expect(taken).toEqual(payloads);
  expect(left).toEqual(rest);
  expect(waiting).toBeGreaterThan(0);
});

test('a payload of several packets', () => {
  const long = Buffer.concat([Buffer.alloc(FULL, 1), Buffer.from('its end')]);
  const sent = [packet(long.subarray(0, FULL)), packet(long.subarray(FULL)), packet(payloads[0]!)];
  const { taken } = received(Buffer.concat(sent), 1_000_000);
  expect(taken.map(({ length }) => length)).toEqual([long.length, 1]);
  expect(taken[0]!.equals(long)).toBe(true);
});
