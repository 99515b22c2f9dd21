import { describe, expect, test } from 'bun:test';
import { createRedactor } from '../../server/platform/redaction/redact.ts';

const secret = 'p@ss w0rd/"+x';
const { text, url, headers, query, takeCount } = createRedactor([secret, 'abc']);

describe('a stored secret never appears in a log', () => {
  test.each([
    ['as it is', secret],
    ['URL-encoded', encodeURIComponent(secret)],
    ['JSON-escaped', JSON.stringify(secret)],
    ['Base64', Buffer.from(secret).toString('base64')],
  ])('%s', (_, spelled) => {
    expect(text(`before ${spelled} after`)).not.toContain(spelled.replaceAll('"', ''));
    expect(text(`before ${spelled} after`)).toContain('before');
  });
  test('a value shorter than four characters is not redacted, since it would corrupt every text', () => {
    expect(text('abcabc')).toBe('abcabc');
  });
});

describe('an unstored secret is recognized by its name or form', () => {
  test.each([
    ['{"client_secret":"s3cr3t-value"}', 's3cr3t-value'],
    ['password=hunter22&user=me', 'hunter22'],
    ["alter role me password 'hunter22'", 'hunter22'],
    ['Authorization: Bearer abcdefgh12345678', 'abcdefgh12345678'],
    ['postgres://user:hunter22@host/db', 'hunter22'],
    ['eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl', 'eyJzdWIiOiIx'],
    ['"BASIC dXNlcjpodW50ZXIyMg=="', 'dXNlcjpodW50ZXIyMg'],
    ["ALTER ROLE me PASSWORD  'hunter22'", 'hunter22'],
    ['{"API-Key" : "s3cr3t-value"}', 's3cr3t-value'],
    ['x-apikey: s3cr3t-value', 's3cr3t-value'],
    ['PWD=hunter22;', 'hunter22'],
    ["aws_Credential='hunter22'", 'hunter22'],
    ['x-amz-signature=abcdef', 'abcdef'],
    [`dpm_${'a'.repeat(12)}_${'b'.repeat(49)}`, 'bbbb'],
    ['-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----', 'MIIabc'],
    ['{"password":"a\\"hunter22"}', 'hunter22'],
    [JSON.stringify('{"password":"a\\"hunter22"}'), 'hunter22'],
    [JSON.stringify(JSON.stringify('{"password" : "a\\"hunter22"}')), 'hunter22'],
    [JSON.stringify("{'password': 'hunter22'}"), 'hunter22'],
    // Letters whose lower case has more characters.
    ['İİİİİİİİ token=hunter22', 'hunter22'],
    // The other side sent this very mark, or the value contains a stored secret.
    ['"token":"[redacted] hunter22"', 'hunter22'],
    [`password=${secret.slice(0, 4)}${encodeURIComponent(secret)}hunter22`, 'hunter22'],
    [`-----BEGIN PRIVATE KEY-----\n${secret}\nMIIabc\n-----END PRIVATE KEY-----`, 'MIIabc'],
    ['postgres://user:[redacted]hunter22@host/db', 'hunter22'],
  ])('%s', (line, hidden) => {
    expect(text(line)).not.toContain(hidden);
  });
  test.each([
    ['{"password":"hunter22","user":"me"}', '{"password":"[redacted]","user":"me"}'],
    [JSON.stringify('{"password":"hunter22","user":"me"}'), JSON.stringify('{"password":"[redacted]","user":"me"}')],
    ["alter role me password 'hunter''22' login", "alter role me password '[redacted]' login"],
    ['postgres://user:hunter22@host/db', 'postgres://[redacted]@host/db'],
    ['postgres://user:[redacted]@host/db', 'postgres://user:[redacted]@host/db'],
  ])('and nothing else, once: %s', (line, expected) => {
    expect(text(line)).toBe(expected);
    takeCount();
    expect(text(expected)).toBe(expected);
    expect(takeCount()).toBe(0);
  });
  test('secrets in query keys are redacted by name', () => {
    expect(url('https://a.test/x?api_key=12345&page=2')).toBe('https://a.test/x?api_key=[redacted]&page=2');
    expect(query({ access_token: '1', page: '2' })).toEqual({ access_token: '[redacted]', page: '2' });
    // A signed address of Azure. Names that only contain the letters stay.
    const signed = 'https://a.blob.test/c/f.csv?sv=2025-01-05&sp=r&sig=aB%2Fc%3D&design=plain';
    expect(url(signed)).toBe('https://a.blob.test/c/f.csv?sv=2025-01-05&sp=r&sig=[redacted]&design=plain');
    expect(query({ SIG: 'aB/c=', design: 'plain' })).toEqual({ SIG: '[redacted]', design: 'plain' });
  });
  test('headers are shown only when they are known to be harmless', () => {
    expect(headers({ 'X-Api-Key': 'k', 'X-Unheard-Of': 'v', 'Content-Type': 'text/csv' })).toEqual({
      'X-Api-Key': '[redacted]',
      'X-Unheard-Of': '[redacted]',
      'Content-Type': 'text/csv',
    });
  });
});

test('the redaction count is reported once', () => {
  takeCount();
  text(`${secret} and ${secret}`);
  expect(takeCount()).toBe(2);
  expect(takeCount()).toBe(0);
});
