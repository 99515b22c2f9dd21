import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeEach, expect, test } from 'bun:test';
import { zipSync } from 'fflate';
import { fileSource } from '../../server/connectors/file/source.ts';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { limitHangs } from '../support/hangs.ts';
import { readFiles, type SourceTestContext } from './file-support.ts';
import { readBatches, requestOf } from './reading.ts';
import { errorOf } from './unreachable.ts';
import { contextOf } from './places.ts';

limitHangs();

let root: string;
const roots: string[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'data-pipelines-xml-'));
  roots.push(root);
});
afterAll(() => roots.forEach((each) => rmSync(each, { recursive: true, force: true })));

const CATALOG = `<?xml version="1.0" encoding="UTF-8"?>
<!-- books --><!DOCTYPE catalog SYSTEM "http://127.0.0.1:1/catalog.dtd">
<catalog xmlns="urn:books" xmlns:dc="urn:dc" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <title>All books</title>
  <book id="1" xsi:type="novel">
    <title>  Zoë &amp; the &#x2603; </title>
    <price currency="EUR">12.50</price>
    <author>Ann</author><author>Bob</author>
    <lines><line sku="a">1</line><line sku="b">2</line></lines>
    <dc:date>2026-01-31</dc:date>
    <sold>true</sold>
  </book>
  <book id="2">
    <title><![CDATA[<b>2 & 3</b>]]></title>
    <price>7</price>
    <author>Cid</author>
    <lines><line>3</line></lines>
    <dc:date xsi:nil="true"/>
    <sold/>
  </book>
</catalog>
`;

function write(name: string, text: string | Uint8Array, modified = 1_000): void {
  writeFileSync(join(root, name), text);
  utimesSync(join(root, name), modified, modified);
}

const contextFor = (settings: object, warnings?: string[]): SourceTestContext => {
  const ctx = contextOf(fileSource, { filesRoot: root }, { settings: { path: 'books.xml', ...settings } });
  const warn = (code: string, text: string) => void warnings?.push(`${code}: ${text}`);
  return { ...ctx, ...(warnings && { warn }) } as SourceTestContext;
};

async function streamOf(text: string | Uint8Array, settings: object = {}) {
  write('books.xml', text);
  const ctx = contextFor(settings);
  const [stream] = await fileSource.discover(ctx);
  return { ctx, stream: stream! };
}

const typesOf = async (text: string | Uint8Array, settings: object = {}) =>
  (await streamOf(text, settings)).stream.fields.map(({ path, type }) => `${path[0]} ${type}`);

async function rowsOf(text: string | Uint8Array, settings: object = {}) {
  write('books.xml', text);
  return (await readFiles(contextFor(settings))).rows;
}

test('attributes, elements, lists, CDATA and entities become columns that have one form in all rows', async () => {
  expect(await typesOf(CATALOG)).toEqual([
    '@id integer',
    'title string',
    'price json',
    'author array',
    'lines json',
    'dc:date date',
    'sold boolean',
  ]);
  const one = ['1', 'Zoë & the ☃', '{"@currency":"EUR","#text":"12.50"}', '["Ann","Bob"]'];
  const two = ['2', '<b>2 & 3</b>', '{"#text":"7"}', '["Cid"]', '{"line":[{"#text":"3"}]}', null, null];
  expect(await rowsOf(CATALOG)).toEqual([
    [...one, '{"line":[{"@sku":"a","#text":"1"},{"@sku":"b","#text":"2"}]}', '2026-01-31', 'true'],
    two,
  ]);
});

test.each([
  ['the outermost element that repeats', '<r><x><i>1</i><i>2</i></x><x><i>3</i></x></r>', ['i array'], 2],
  ['the one that repeats most', '<r><a>1</a><i><b>1</b></i><a>1</a><i/><i><b>2</b></i></r>', ['b integer'], 3],
  ['whatever depth it has', '<r><h><v>1</v></h><d><e><i><b>x</b></i><i/></e></d></r>', ['b string'], 2],
  ['elements of text alone', '<r><i>1</i><i>2</i></r>', ['#text integer'], 2],
])('without a path the records are %s', async (_, text, types, count) => {
  expect(await typesOf(text)).toEqual(types);
  expect(await rowsOf(text)).toHaveLength(count);
});

test.each(['feed/data/entry', '/feed/data/entry', 'a:feed/b:data/a:entry'])(
  'the records at %s, with and without prefixes',
  async (record_element) => {
    const head = '<a:feed xmlns:a="a" xmlns:b="b"><a:entry>no</a:entry><b:data><a:entry a:n="1">';
    const text = `${head}<a:v>x</a:v><b:v>y</b:v></a:entry></b:data><entry/></a:feed>`;
    expect(await typesOf(text, { record_element })).toEqual(['@n integer', 'v string', 'b:v string']);
    expect(await rowsOf(text, { record_element })).toEqual([['1', 'x', 'y']]);
  },
);

test('the root can be the record, and names of JavaScript are names like others', async () => {
  const text = '<r><__proto__>1</__proto__><constructor a="b"/><__proto__>2</__proto__></r>';
  expect(await typesOf(text, { record_element: 'r' })).toEqual(['__proto__ array', 'constructor json']);
  expect(await rowsOf(text, { record_element: 'r' })).toEqual([['["1","2"]', '{"@a":"b"}']]);
});

test('what discovery found decides in later files, of one record too', async () => {
  write('1.xml', '<r><i><a>1</a></i><i><a>2</a></i></r>', 1_000);
  write('2.xml', '<r><i><a>1</a><a>2</a></i></r>', 2_000);
  const warnings: string[] = [];
  const ctx = contextFor({ path: '*.xml' }, warnings);
  const [stream] = await fileSource.discover(ctx);
  expect(stream!.fields.map(({ path, type }) => `${path[0]} ${type}`)).toEqual(['a array']);
  const request = requestOf(stream!, { sync_mode: 'incremental' });
  const batches = await readBatches(fileSource, ctx, request);
  expect(batches.flatMap(({ rows }) => rows)).toEqual([['["1"]'], ['["2"]'], ['["1","2"]']]);
  write('3.xml', '<r><i><a b="1">3</a><new>x</new></i></r>', 3_000);
  const state = JSON.parse(JSON.stringify(batches.at(-1)!.state));
  const described = await fileSource.describe!(ctx, stream!, state);
  expect(described!.fields.map(({ path, type }) => `${path[0]} ${type}`)).toEqual(['a array', 'new string']);
  const rest = await readBatches(fileSource, ctx, requestOf(described!, { sync_mode: 'incremental', state }));
  expect(rest.flatMap(({ rows }) => rows)).toEqual([['[{"@b":"1","#text":"3"}]', 'x']]);
  expect(warnings).toEqual([expect.stringContaining('new_structure: 3.xml: the elements "a" repeat or have parts')]);
});

test('a read resumes after the rows that its state has, in gzip, zstd and ZIP', async () => {
  const items = Array.from({ length: 12_000 }, (_, id) => `<row><id>${id}</id></row>\n`).join('');
  const text = `<rows>\n${items}</rows>`;
  write('rows.xml.gz', gzipSync(text));
  write('rows.xml.zst', zstdCompressSync(text));
  write('rows.zip', zipSync({ 'in/rows.xml': Buffer.from(text) }));
  for (const path of ['rows.xml.gz', 'rows.xml.zst', 'rows.zip']) {
    const ctx = contextFor({ path });
    const [stream] = await fileSource.discover(ctx);
    expect(stream?.name).toBe('rows');
    const batches = await readBatches(fileSource, ctx, requestOf(stream!, { sync_mode: 'incremental' }));
    const state = batches[0]?.state ?? null;
    expect(batches[0]?.rows.length).toBeLessThan(12_000);
    const rest = await readBatches(fileSource, ctx, requestOf(stream!, { sync_mode: 'incremental', state }));
    const ids = [batches[0]!, ...rest].flatMap(({ rows }) => rows.map(([id]) => id));
    expect(ids).toEqual(Array.from({ length: 12_000 }, (_, id) => String(id)));
  }
});

const declared = (encoding: string) => `<?xml version='1.0' encoding='${encoding}'?><r><i>é日</i><i>ü</i></r>`;
const utf16 = (text: string, swapped: boolean) => {
  const bytes = Buffer.from(text, 'utf16le');
  return swapped ? bytes.swap16() : bytes;
};

test.each([
  ['UTF-8 with a mark', Buffer.from(`\uFEFF${declared('utf-8')}`), 'é日'],
  ['UTF-8 that another setting does not change', Buffer.from(declared('utf-8')), 'é日', 'shift_jis'],
  ['UTF-16 with a mark', utf16(`\uFEFF${declared('UTF-16')}`, false), 'é日'],
  ['UTF-16 of the other order', utf16(`\uFEFF${declared('UTF-16')}`, true), 'é日'],
  ['UTF-16 without a mark', utf16(declared('UTF-16'), true), 'é日'],
  ['what only says UTF-16', Buffer.from(declared('UTF-16')), 'é日'],
  ['Latin-1', Buffer.from(declared('ISO-8859-1').replace('日', 'x'), 'latin1'), 'éx'],
  [
    'EUC-JP',
    Buffer.concat([
      Buffer.from(declared('EUC-JP').split('é')[0]!),
      Buffer.from('c6fc', 'hex'),
      Buffer.from('</i><i/></r>'),
    ]),
    '日',
  ],
  ['the setting, if the document does not say', Buffer.from('<r><i>\xe9</i><i/></r>', 'latin1'), 'é', 'windows-1252'],
] as [string, Buffer, string, string?][])('the encoding is %s', async (_, bytes, text, encoding = 'utf-8') => {
  expect((await rowsOf(bytes, { encoding }))[0]).toEqual([text]);
});

const RECORDS = Array.from({ length: 30_000 }, (_, id) => `<i><id>${id}</id></i>\n`).join('');

test.each([
  ['truncated', '<r>\n<i><a>1</a></i>\n<i>', 'malformed_xml', 'books.xml, line 3, column 4: unclosed tag: i'],
  ['truncated far away', `<r>\n${RECORDS}<i><id>1`, 'malformed_xml', 'books.xml, line 30002'],
  ['not well-formed', '<r>\n<i></j></r>', 'malformed_xml', 'books.xml, line 2, column 8: unexpected close tag'],
  ['empty', '', 'malformed_xml', 'books.xml, line 1, column 1: document must contain a root element'],
  ['no XML', '{"a": 1}', 'malformed_xml', 'books.xml, line 1, column 9: text data outside of root node'],
  ['two documents', '<r><i/><i/></r>\n<r/>', 'malformed_xml', 'books.xml, line 2'],
  [
    'an entity of its own',
    '<!DOCTYPE r [<!ENTITY a "b">]>\n<r><i>&a;</i><i/></r>',
    'malformed_xml',
    'entities of a document type are not supported',
  ],
  [
    'an entity of a file',
    '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><r><i>&a;</i><i/></r>',
    'malformed_xml',
    'entities of a document type are not supported',
  ],
  ['an unknown entity', '<r><i>&nbsp;</i><i/></r>', 'malformed_xml', 'books.xml, line 1, column 13: undefined entity'],
  ['nested without end', `<r>${'<a>'.repeat(2_000)}`, 'malformed_xml', 'more than 1000 elements are nested'],
  [
    'of another encoding',
    Buffer.from('<r>\n<i>\xe9</i><i/></r>', 'latin1'),
    'invalid_encoding',
    'books.xml, line 2: the text is not valid utf-8',
  ],
  ['of an unknown encoding', '<?xml version="1.0" encoding="klingon"?><r/>', 'encoding_unknown', '"klingon"'],
  ['without repetition', '<r><i>1</i></r>', 'record_element_unknown', 'books.xml: no element repeats'],
] as [string, string | Buffer, string, string][])(
  'a document that is %s is refused',
  async (_, text, code, message) => {
    const error = await errorOf(typesOf(text));
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(message)]);
    const { ctx, stream } = await streamOf('<r><i><id>1</id></i><i/></r>');
    write('books.xml', text);
    if (code === 'record_element_unknown') return;
    expect(await errorOf(readBatches(fileSource, ctx, requestOf(stream)))).toMatchObject({ code });
  },
);

test.each([
  ['of another root', 'list/book', 'books.xml has no element list/book. Its root is catalog'],
  ['of another element', 'catalog/books', 'books.xml has no element catalog/books. catalog has title, book'],
  ['that goes deeper', 'catalog/book/isbn/x', 'catalog/book has title, price, author, lines, date, sold'],
])('a path %s is refused with what is there instead', async (_, record_element, message) => {
  const error = await errorOf(typesOf(CATALOG, { record_element }));
  expect([error.code, error.message]).toEqual(['record_element_missing', expect.stringContaining(message)]);
});

test('a document without records has no rows, and one of another root is refused', async () => {
  const { ctx, stream } = await streamOf(CATALOG);
  write('books.xml', '<catalog><title>None today</title></catalog>');
  expect(await readBatches(fileSource, ctx, requestOf(stream))).toMatchObject([{ rows: [] }]);
  write('books.xml', '<error>too many requests</error>');
  const error = await errorOf(readBatches(fileSource, ctx, requestOf(stream)));
  expect([error.code, error.message]).toEqual([
    'record_element_missing',
    'books.xml has no element catalog/book. Its root is error',
  ]);
  const deep = await streamOf('<a><b><c>1</c><c>2</c></b></a>');
  write('books.xml', '<a><problem/></a>');
  expect(await errorOf(readBatches(fileSource, deep.ctx, requestOf(deep.stream)))).toMatchObject({
    message: 'books.xml has no element a/b/c. a has problem',
  });
  expect(await typesOf('<catalog/>', { record_element: 'catalog/book' })).toEqual([]);
  expect(await typesOf('<catalog/>')).toEqual([]);
});

test('another path than that of the schema is refused until the schema is refreshed', async () => {
  const { stream } = await streamOf(CATALOG);
  const ctx = contextFor({ record_element: 'catalog/title' });
  expect(await errorOf(readBatches(fileSource, ctx, requestOf(stream)))).toMatchObject({
    code: 'record_element_changed',
  });
  const same = contextFor({ record_element: '/catalog/book' });
  expect((await readBatches(fileSource, same, requestOf(stream))).flatMap(({ rows }) => rows)).toHaveLength(2);
});

test('a value that does not fit is named with file, line and column', async () => {
  const rest = '</i>\n'.padStart(1000);
  const { ctx, stream } = await streamOf(`<r>\n${RECORDS}</r>`);
  for (const [value, message] of [
    ['<id>x</id>', 'the value is not a valid integer'],
    ['<id>1</id><id>2</id>', 'the element repeats or has elements, and is not a valid integer'],
  ]) {
    write('books.xml', `<r>\n${RECORDS}<i>${value}${rest}</r>`);
    const error = await errorOf(readBatches(fileSource, ctx, requestOf(stream)));
    expect([error.code, error.message]).toEqual([
      'value_does_not_fit',
      `books.xml, line 30002, column "id": ${message}`,
    ]);
  }
});

test('a text that repeats for the first time after the sample is JSON in its row, with a warning', async () => {
  const { stream } = await streamOf('<r><i><a>x</a></i><i><a>y</a></i></r>');
  write('books.xml', '<r><i><a>x</a></i><i><a>y</a><a>z</a></i><i><b>new</b></i></r>');
  const warnings: string[] = [];
  const batches = await readBatches(fileSource, contextFor({}, warnings), requestOf(stream));
  expect(batches.flatMap(({ rows }) => rows)).toEqual([['x'], ['["y","z"]'], [null]]);
  expect(warnings.map((text) => text.split(':')[0])).toEqual(['new_structure', 'new_columns']);
});

test('a record without end is refused before it fills the memory', async () => {
  const { ctx, stream } = await streamOf('<r><i><a>x</a></i><i/></r>');
  const part = `<a>${'x'.repeat(1_000)}</a>`.repeat(70_000);
  write('books.xml', `<r>\n<i>${part}</i></r>`);
  expect(await errorOf(readBatches(fileSource, ctx, requestOf(stream)))).toMatchObject({
    code: 'record_too_long',
    message: 'books.xml, line 2: a record is longer than 64 MB',
  });
  write('books.xml', `<r>\n<!--${'x'.repeat(70 << 20)}`);
  const error = await errorOf(readBatches(fileSource, ctx, requestOf(stream)));
  expect(error.message).toContain('a text, tag or comment is longer than 64 MB');
});

test.each(['a//b', 'a/', '@id', 'a b', 'catalog/*'])('the path %s is refused', (record_element) => {
  const parsed = parseParameters(fileSource, { path: 'x', record_element });
  expect('problems' in parsed && parsed.problems).toMatchObject([{ parameter: 'record_element' }]);
});
