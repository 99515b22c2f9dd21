import { expect, test } from 'bun:test';
import { boundsOf } from '../../server/connectors/kits/files/formats/parquet/write/bounds.ts';
import { PlainValues } from '../../server/connectors/kits/files/formats/parquet/write/plain-values.ts';

const random = (below: number) => Math.floor(Math.random() * below);

function boundsOfTexts(texts: Buffer[]) {
  const values = new PlainValues(texts.length);
  for (const text of texts) {
    const at = values.add(4 + text.length);
    values.view.setUint32(at, text.length, true);
    values.bytes.set(text, at + 4);
  }
  const { min, max } = boundsOf(values, 'text')!;
  values.close();
  return { min: Buffer.from(min).toString('hex'), max: Buffer.from(max).toString('hex') };
}

test.each([
  ['of any length with any bytes', () => Array.from({ length: random(12) }, () => random(256))],
  ['that differ in few bytes', () => Array.from({ length: random(16) }, () => [0x61, 0x7f, 0x80, 0xff][random(4)]!)],
  ['with the same beginning', () => [...Buffer.from('https://example.com/'), ...Buffer.from(String(random(500)))]],
])('the bounds of texts %s are those of their bytes', (_, bytesOf) => {
  for (let turn = 0; turn < 200; turn += 1) {
    const texts = Array.from({ length: 1 + random(40) }, () => Buffer.from(bytesOf()));
    const sorted = texts.toSorted((a, b) => Buffer.compare(a, b)).map((text) => text.toString('hex'));
    expect(boundsOfTexts(texts)).toEqual({ min: sorted[0]!, max: sorted.at(-1)! });
  }
});
