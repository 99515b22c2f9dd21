import { expect, test } from 'bun:test';
import { PassThrough } from 'node:stream';
import { LoadData, type LoadResult } from '../../server/connectors/mysql/connection/load-data.ts';
import type { DriverPacket } from '../../server/connectors/mysql/connection/taken-socket.ts';
import { LoadLines } from '../../server/connectors/mysql/write/load-lines.ts';

/** Numbers of a packet in the order in which they are read. */
const packet = (...numbers: (number | null)[]): DriverPacket => ({
  isError: () => false,
  asError: () => new Error('no error'),
  readInt16: () => numbers.shift() as number,
  readLengthCodedNumber: () => numbers.shift() as number | null,
});
const refused: DriverPacket = { ...packet(), isError: () => true, asError: () => new Error('refused') };
const ASKS_FOR_FILE = [null];

function load(lines: Buffer) {
  const stream = new PassThrough();
  const connection = {
    stream,
    packetParser: { execute: () => {} },
    sequenceId: 7,
    addCommand: () => {},
    reset: () => {},
    destroy: () => {},
  };
  const { promise, ...done } = Promise.withResolvers<LoadResult>();
  promise.catch(() => {});
  const command = new LoadData('load data …', lines, done);
  const next = (answer?: DriverPacket) => {
    // As the driver counts.
    if (answer) connection.sequenceId += 1;
    return command.execute(answer, connection);
  };
  const sent = () => {
    const chunks: Buffer[] = [];
    for (let chunk: Buffer | null = stream.read(); chunk; chunk = stream.read()) chunks.push(chunk);
    return packetsOf(Buffer.concat(chunks));
  };
  return { command, next, sent, result: promise };
}

function packetsOf(bytes: Buffer): { sequence: number; payload: Buffer }[] {
  const packets: { sequence: number; payload: Buffer }[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + bytes.readUIntLE(at, 3);
    packets.push({ sequence: bytes[at + 3]!, payload: bytes.subarray(at + 4, end) });
    at = end;
  }
  return packets;
}

test('the lines follow the request for them, in numbered packets up to an empty one', async () => {
  const lines = Buffer.alloc(2.5 * 1024 * 1024, 'abc\n');
  const { next, sent, result } = load(lines);
  expect(next()).toBe(false);
  expect(sent()).toEqual([{ sequence: 0, payload: Buffer.from('\u0003load data …') }]);
  expect(next(packet(...ASKS_FOR_FILE))).toBe(false);
  const packets = sent();
  expect(packets.map(({ sequence }) => sequence)).toEqual([2, 3, 4, 5]);
  expect(Buffer.concat(packets.map(({ payload }) => payload)).equals(lines)).toBe(true);
  expect(packets.at(-1)!.payload.length).toBe(0);
  const [columns, count, insertId, status, warnings] = [0, 4321, 0, 3, 2];
  expect(next(packet(columns, count, insertId, status, warnings))).toBe(true);
  expect(await result).toEqual({ count, warnings });
});

test('a server that takes no file gets none', async () => {
  const { next, sent, result } = load(Buffer.from('1\n'));
  next();
  sent();
  expect(next(refused)).toBe(true);
  expect(sent()).toEqual([]);
  await expect(result).rejects.toThrow('refused');
});

test('a broken connection ends it', async () => {
  const { command, next, result } = load(Buffer.from('1\n'));
  next();
  command.onResult(new Error('lost'));
  await expect(result).rejects.toThrow('lost');
});

const COPIED = [
  '1\tt\t2024-01-05 03:43:10.5+00\ta\\tb\\\\c\\f\t\\\\x00095cff\n',
  '\\N\t\\N\t\\N\t\\N\t\\N\n',
  '22\tf\t2024-01-05 03:43:10+00\tü\t\\\\x\n',
].join('');
const LOADED = [
  '1\t1\t2024-01-05 03:43:10.5\ta\\tb\\\\c\f\t\\0\\\t\\\\\xff\n',
  '\\N\t\\N\t\\N\t\\N\t\\N\n',
  '22\t0\t2024-01-05 03:43:10\t\xc3\xbc\t\n',
].join('');

test.each([1, 2, 3, 7, 20, 64, 1000])('COPY text in chunks of %d bytes becomes the same lines', (size) => {
  const lines = new LoadLines(['whole', 'flag', 'instant', 'text', 'bytes'], 16);
  const copied = Buffer.from(COPIED);
  for (let at = 0; at < copied.length; at += size) {
    const chunk = Buffer.from(copied.subarray(at, at + size));
    lines.add(chunk);
    // As memory that is used again.
    chunk.fill(0x0a);
  }
  expect(lines.take().toString('latin1')).toBe(LOADED);
  expect(lines.length).toBe(0);
});
