import { describe, expect, test } from 'bun:test';
import type { ExportDocument, ExportedStream } from '../../server/exports/document.ts';
import { formatExport } from '../../server/exports/formats.ts';

const stream = (rest: Partial<ExportedStream> = {}): ExportedStream => ({
  namespace: 'public',
  name: 'users',
  description: 'Who, "really"',
  primary_key: ['id'],
  cursor_field: 'at',
  supported_sync_modes: ['full_refresh'],
  supports_date_window: true,
  discovered_at: '2026-01-01T00:00:00.000Z',
  ...rest,
});
const field = (name: string, rest: object = {}) => ({
  name,
  type: 'string',
  source_type: 'text',
  nullable: true,
  is_primary_key: false,
  is_cursor_candidate: false,
  description: null,
  override: null,
  ...rest,
});
const document = (...streams: ExportedStream[]): ExportDocument => ({
  exported_at: '2026-01-02T00:00:00.000Z',
  account_connector: { id: 'some-id', name: 'Shop', connector_name: 'postgres' },
  catalog_refreshed_at: null,
  streams,
});

describe('an export', () => {
  test('as JSON is the document itself', () => {
    const one = document(stream({ fields: [field('id')] }));
    expect(JSON.parse(formatExport(one, 'json', 'x://y'))).toEqual(one);
  });

  test('as CSV has one line per field, quoted where needed', () => {
    const override = { masking: 'redact' as const, destination_name: 'a,b' };
    const text = formatExport(
      document(
        stream({ fields: [field('at', { override, description: 'two\nlines' })] }),
        stream({ name: 'orders', fields: [field('n', { samples: ['1'] })] }),
      ),
      'csv',
      'x://y',
    );
    expect(text).toBe(
      [
        'namespace,stream,stream_description,discovered_at,field,type,source_type,nullable,is_primary_key,is_cursor,' +
          'description,destination_name,destination_type,masking,excluded,samples',
        'public,users,"Who, ""really""",2026-01-01T00:00:00.000Z,at,string,text,true,false,true,' +
          '"two\nlines","a,b",,redact,false,',
        'public,orders,"Who, ""really""",2026-01-01T00:00:00.000Z,n,string,text,true,false,false,,,,none,false,"[""1""]"',
        '',
      ].join('\r\n'),
    );
  });

  test('as CSV without fields has one line per stream', () => {
    const usage = { connections: 2, rows_loaded: 7, last_succeeded_at: null };
    const lines = formatExport(document(stream({ usage })), 'csv', 'x://y').split('\r\n');
    expect(lines[0]).toEndWith('primary_key,cursor_field,connections,rows_loaded,last_succeeded_at');
    expect(lines[1]).toEndWith('id,at,2,7,');
  });

  test('as OpenLineage has one DatasetEvent per line', () => {
    const text = formatExport(
      document(
        stream({ fields: [field('id', { description: 'the key' })] }),
        stream({ namespace: null, description: null }),
      ),
      'openlineage',
      'postgres://db:5432',
    );
    const [one, two] = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(one).toMatchObject({
      eventTime: '2026-01-02T00:00:00.000Z',
      schemaURL: expect.stringContaining('DatasetEvent'),
      dataset: {
        namespace: 'postgres://db:5432',
        name: 'public.users',
        facets: {
          documentation: { description: 'Who, "really"' },
          schema: { fields: [{ name: 'id', type: 'text', description: 'the key' }] },
        },
      },
    });
    expect(two.dataset.name).toBe('users');
    expect(Object.keys(two.dataset.facets)).toEqual(['datasource']);
  });
});
