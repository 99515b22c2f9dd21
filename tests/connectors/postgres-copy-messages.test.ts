import { describe, expect, test } from 'bun:test';
import { PassThrough } from 'node:stream';
import { CopyMessages } from '../../server/connectors/postgres/connection/copy-messages.ts';

function message(code: string, body: string): Buffer {
  const header = Buffer.from(`${code}\0\0\0\0`);
  header.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([header, Buffer.from(body)]);
}

const BEFORE = [message('N', 'a notice'), message('W', '\0')];
const VALUES = ['one', '', 'x'.repeat(300), 'two'];
const AFTER = [message('c', ''), message('C', 'COPY 0\0'), message('Z', 'I'), message('d', 'of the next copy')];
const FAILED = [message('E', 'an error'), message('Z', 'I'), message('d', 'of the next copy')];
const stream = (end: Buffer[]) =>
  Buffer.concat([...BEFORE, ...VALUES.map((value) => message('d', value)), message('N', 'another'), ...end]);
const forDriver = (end: Buffer[]) => Buffer.concat([...BEFORE, message('N', 'another'), ...end]).toString();

/** What the COPY and the driver get of bytes that arrive in pieces of this size. */
async function received(all: Buffer, size: number): Promise<{ values: string[]; driver: string }> {
  const socket = new PassThrough();
  const values: string[] = [];
  let driver = '';
  socket.on('data', (chunk: Buffer) => (driver += chunk.toString()));
  new CopyMessages((bytes, from, to) => values.push(bytes.toString('utf8', from, to))).takeFrom({ stream: socket });
  for (let at = 0; at < all.length; at += size) {
    socket.write(Buffer.from(all.subarray(at, at + size)));
    await Promise.resolve();
  }
  const ended = Promise.withResolvers<void>();
  socket.on('end', () => ended.resolve());
  socket.end();
  await ended.promise;
  return { values, driver };
}

describe('messages of a COPY arrive whole, in whatever pieces the socket has them; the driver gets all others', () => {
  test.each([
    { what: 'to its end', end: AFTER },
    { what: 'to an error', end: FAILED },
  ])('$what, and what follows', async ({ end }) => {
    const all = stream(end);
    for (let size = 1; size <= all.length; size += size < 40 ? 1 : 37) {
      expect(await received(all, size)).toEqual({ values: VALUES, driver: forDriver(end) });
    }
  });
});
