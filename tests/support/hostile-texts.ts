/** Values that a redactor searches in the texts below. */
export const SEARCHED_VALUES = ['a'.repeat(64), 'hunter2hunter2'];

/** Repeated, each is a text that is slow to search for secrets: nearly every few characters could begin one. */
export const HOSTILE_PARTS = [
  'token-',
  'token="',
  "token='",
  'token = ',
  'api_key:\\"',
  'eyJ-',
  'eyJaaaaaaaa.',
  '-----BEGIN PRIVATE KEY-----',
  "password '",
  'password  ',
  'bearer ',
  'basic/',
  '://a:',
  'x://',
  'a:@',
  `${'a'.repeat(63)}b`,
  'hunter2hunter',
];
