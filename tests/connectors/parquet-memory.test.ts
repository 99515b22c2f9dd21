import { afterAll, expect, test } from 'bun:test';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { PageCompressor } from '../../server/connectors/kits/files/formats/parquet/write/compress.ts';
import { ParquetFile } from '../../server/connectors/kits/files/formats/parquet/write/file.ts';
import { PlainValues } from '../../server/connectors/kits/files/formats/parquet/write/plain-values.ts';
import { PARQUET_TYPES } from '../../server/connectors/kits/files/formats/parquet/write/types.ts';

const folder = mkdtempSync(join(tmpdir(), 'data-pipelines-parquet-memory-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ROWS = 10_000;

function filled(): PlainValues {
  const values = new PlainValues(ROWS);
  for (let row = 0; row < ROWS; row += 1) values.words[values.add(8) >> 2] = row * 2_654_435_761;
  return values;
}

test('memory that values have grown out of is free at once', () => {
  const values = filled();
  const { buffer } = values.bytes;
  values.add(buffer.byteLength);
  expect(buffer.detached).toBe(true);
});

test('the memory of a page is used again, and free once the last group has ended', () => {
  const values = filled();
  const first = values.take(ROWS);
  values.reuse(first);
  values.add(8 * ROWS);
  const second = values.take(ROWS);
  expect(values.bytes.buffer).toBe(first.buffer);
  values.close();
  expect(first.buffer.detached).toBe(true);
  expect(second.buffer.detached).toBe(false);
  values.reuse(second);
  expect(second.buffer.detached).toBe(true);
});

/** @returns the large chunks that the stream was given */
async function written(stream: Writable): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  const write = stream.write.bind(stream) as (chunk: Uint8Array, done?: () => void) => boolean;
  stream.write = ((chunk: Uint8Array, done?: () => void) => {
    if (chunk.length > ROWS) chunks.push(chunk);
    return write(chunk, done);
  }) as Writable['write'];
  const file = new ParquetFile(stream, [{ name: 'n', type: PARQUET_TYPES.BIGINT }], [new PageCompressor()]);
  const values = filled();
  const page = values.take(ROWS);
  await file.add({ rows: ROWS, columns: [{ page, nulls: 0, bounds: null, reuse: () => {} }] });
  await file.end();
  return chunks;
}

test('pages are free once a file has them, but not what another stream may still send', async () => {
  const [page] = await written(createWriteStream(join(folder, 'one.parquet')));
  expect((page!.buffer as ArrayBuffer).detached).toBe(true);
  const sent: Buffer[] = [];
  const upload = new Writable({ write: (chunk: Buffer, _, done) => (sent.push(chunk), done()) });
  const [kept] = await written(upload);
  expect(kept!.length).toBeGreaterThan(ROWS);
  expect(Buffer.concat(sent).equals(Buffer.from(await Bun.file(join(folder, 'one.parquet')).arrayBuffer()))).toBe(true);
});
