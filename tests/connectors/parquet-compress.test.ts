import { expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PageCompressor } from '../../server/connectors/kits/files/formats/parquet/write/compress.ts';

const MB = 1024 * 1024;
const LEVELS = [1, 2, 3] as const;

function pageOf(textAt: (row: number) => string, bytes: number): Uint8Array<ArrayBuffer> {
  const texts: string[] = [];
  for (let length = 0; length < bytes; length += texts.at(-1)!.length) texts.push(textAt(texts.length));
  return new Uint8Array(Buffer.from(texts.join('')).subarray(0, bytes));
}

const hash = (row: number) => new Bun.CryptoHasher('md5').update(String(row)).digest('hex');

const guides = join(import.meta.dir, '../../server/docs/guides');
const lines = readdirSync(guides, { recursive: true })
  .filter((name) => String(name).endsWith('.md'))
  .flatMap((name) => readFileSync(join(guides, String(name)), 'utf8').split('\n'));

const sizes = (page: Uint8Array<ArrayBuffer>) => LEVELS.map((level) => Bun.zstdCompressSync(page, { level }).length);

/** Seconds, in microseconds from 2024 on. */
const times = new Uint8Array(
  new BigInt64Array(120_000).map((_, at) => 1_704_067_200_000_000n + 1_000_000n * BigInt(at)).buffer,
);
const repeated = new Uint8Array(new BigInt64Array(120_000).map((_, at) => BigInt(at % 100)).buffer);

test('a page is compressed by the fastest level that packs it as well as the others do', async () => {
  const prose = pageOf((row) => `${lines[(row * 7919) % lines.length]} ${row % 97}`, 2 * MB);
  for (const [page, level] of [
    [pageOf(hash, 2 * MB), 0],
    [prose, 2],
    [times, 1],
    [repeated, 2],
  ] as const) {
    const compressed = await new PageCompressor().compress(page);
    expect(Bun.zstdDecompressSync(compressed).equals(page)).toBe(true);
    expect(compressed.length).toBe(sizes(page)[level]!);
  }
});

test('a small page is compressed without a trial', async () => {
  const page = pageOf(hash, MB / 2 - 1);
  expect((await new PageCompressor().compress(page)).length).toBe(sizes(page)[2]!);
});
