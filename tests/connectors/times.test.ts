import { expect, test } from 'bun:test';
import postgres from 'postgres';
import { NORMALIZERS } from '../../server/connectors/cells/normalizers.ts';
import {
  compareMoments,
  dateText,
  instantText,
  microsOf,
  parseTime,
  rfc3339,
} from '../../server/connectors/cells/timestamp-text.ts';
import { createPlainDatabase } from '../support/database.ts';

/** In UTC, as PostgreSQL prints it with six digits; null: no such time exists. */
const TIMES: [string, string | null][] = [
  ['2026-01-31', '2026-01-31 00:00:00.000000+00'],
  ['2026-01-31T10:00Z', '2026-01-31 10:00:00.000000+00'],
  ['2026-01-31 23:59:59.999999+01:00', '2026-01-31 22:59:59.999999+00'],
  ['9999-12-31 23:59:59.999999+00', '9999-12-31 23:59:59.999999+00'],
  ['9999-12-31T23:59:59.999999-01:00', '10000-01-01 00:59:59.999999+00'],
  ['0001-01-01T00:00:00.000001+00:30', '0001-12-31 23:30:00.000001+00 BC'],
  ['294276-12-31 23:59:59.999999+00', '294276-12-31 23:59:59.999999+00'],
  ['0044-03-15 12:00:00.123456+00 BC', '0044-03-15 12:00:00.123456+00 BC'],
  ['4713-01-01 00:00:00+00 BC', '4713-01-01 00:00:00.000000+00 BC'],
  ['2026-01-31 10:00:00+05:53:28', '2026-01-31 04:06:32.000000+00'],
  ['2024-02-29 00:00:00+00', '2024-02-29 00:00:00.000000+00'],
  ['0001-02-29 00:00:00+00 BC', '0001-02-29 00:00:00.000000+00 BC'],
  ['2024-02-30', null],
  ['2023-02-29', null],
  ['1900-02-29', null],
  ['2026-13-01', null],
  ['2026-00-01', null],
  ['2026-01-00', null],
  ['0000-01-01', null],
  ['2026-01-31 24:30:00', null],
  ['2026-01-31 10:60:00', null],
  ['2026-01-31 10:00:00+16:00', null],
  ['294277-01-01', null],
  ['tomorrow', null],
];

test('a time is exact in every year, and one that no calendar has is none', () => {
  for (const [text, wanted] of TIMES) {
    const at = parseTime(text)?.at ?? null;
    expect([text, at === null || typeof at === 'string' ? at : instantText(at)]).toEqual([text, wanted]);
    expect(Number.isNaN(microsOf(text))).toBe(wanted === null);
  }
});

test('PostgreSQL reads the same moments', async () => {
  const database = await createPlainDatabase();
  const sql = postgres(database.url, { max: 1 });
  const known = TIMES.filter(([, wanted]) => wanted !== null);
  const rows = await sql`select t, ((t::timestamptz) = (w::timestamptz)) as same
    from unnest(${known.map(([text]) => text)}::text[], ${known.map(([, wanted]) => wanted)}::text[]) x(t, w)`;
  expect(rows.filter(({ same }) => same !== true)).toEqual([] as never);
  await sql.end();
  await database.drop();
});

test('days and dates convert to each other over 800,000 days', () => {
  for (let day = -800_000; day <= 3_000_000; day += 997) {
    const at = parseTime(dateText(day))?.at;
    expect(at).toEqual({ day, micros: 0 });
  }
  expect([dateText(-1), dateText(0), dateText(-719_163), dateText(2_932_897)]).toEqual([
    '1969-12-31',
    '1970-01-01',
    '0001-12-31 BC',
    '10000-01-01',
  ]);
});

test('normalizers keep every microsecond of a time with an offset', () => {
  expect(NORMALIZERS.timestamp_tz?.('3024-01-31 23:59:59.999999+01:00')).toBe('3024-01-31 22:59:59.999999+00');
  expect(NORMALIZERS.timestamp_tz?.('2024-02-30T00:00:00Z')).toBeUndefined();
});

test('moments have an order, infinity included; RFC 3339 has the years 1 to 9999', () => {
  const texts = [
    '-infinity',
    '0044-03-15 BC',
    '2026-01-31',
    '2026-01-31 00:00:00.000001+00',
    '10000-01-01',
    'infinity',
  ];
  const moments = texts.map((text) => parseTime(text)!);
  for (const [at, one] of moments.entries()) {
    for (const [other, two] of moments.entries())
      expect(Math.sign(compareMoments(one.at, two.at))).toBe(Math.sign(at - other));
  }
  expect(moments.map(rfc3339)).toEqual([null, null, '2026-01-31T00:00:00Z', '2026-01-31T00:00:00.000001Z', null, null]);
});
