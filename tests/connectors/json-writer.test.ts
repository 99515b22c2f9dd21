import { expect, test } from 'bun:test';
import { jsonRowEncoder } from '../../server/connectors/cells/json-writer.ts';
import { ValueGate } from '../../server/connectors/cells/value-gate.ts';
import type { LogicalType, TargetColumn } from '../../server/connectors/contract/connector.ts';
import { targetOf } from './postgres-support.ts';

type Written = Record<'http' | 'jsonl', unknown>;
const STYLES = {
  http: { times: 'rfc3339', bytes: 'base64' },
  jsonl: { times: 'cell', bytes: 'cell' },
} as const;
const column = (type: LogicalType, more: Partial<TargetColumn> = {}): TargetColumn => ({
  name: 'v',
  type,
  source_type: null,
  dialect: null,
  nullable: true,
  ...more,
});
const same = (value: unknown): Written => ({ http: value, jsonl: value });
const array = (source_type: string) => ({ source_type, dialect: 'postgres' });
const retyped = (source_type: string): Partial<TargetColumn> => ({ from: { type: 'array', ...array(source_type) } });

const VALUES: [TargetColumn, string, Written | 'refused'][] = [
  [column('number'), 'NaN', same('NaN')],
  [column('number'), '-Infinity', same('-Infinity')],
  [column('number'), '12345678901234567890.10', same(Number('12345678901234567890.1'))],
  [column('boolean'), 'true', same(true)],
  [column('boolean'), 'yes', same('yes')],
  [column('json'), '{"a":\n1}', same({ a: 1 })],
  [column('json'), 'no json', 'refused'],
  [column('json', { dialect: 'duckdb', source_type: 'DOUBLE[]' }), '[nan]', 'refused'],
  [column('array'), '[NaN]', 'refused'],
  [column('array', array('integer[]')), '{1,NULL}', same('{1,NULL}')],
  [column('array', array('integer[]')), '[0:1]={1,2}', same('[0:1]={1,2}')],
  [column('json', retyped('integer[]')), '{1,NULL,3}', same([1, null, 3])],
  [column('json', retyped('double precision[]')), '{NaN,0.5}', same(['NaN', 0.5])],
  [column('json', retyped('text[]')), '{a,"b \\"c\\\\",NULL,"NULL",""}', same(['a', 'b "c\\', null, 'NULL', ''])],
  [
    column('json', retyped('boolean[]')),
    '{{t,f},{f,t}}',
    same([
      [true, false],
      [false, true],
    ]),
  ],
  [column('json', retyped('jsonb[]')), '{"{\\"a\\": 1}"}', same([{ a: 1 }])],
  [column('json', retyped('integer[]')), '{}', same([])],
  [column('json', retyped('integer[]')), '[0:1]={1,2}', 'refused'],
  [column('binary'), '\\x00ff', { http: 'AP8=', jsonl: '\\x00ff' }],
  [column('string'), 'half \ud800 pair \0', same('half \ud800 pair \0')],
  ...[
    ['2026-01-31 23:59:59.5+00', '2026-01-31T23:59:59.5Z'],
    ['2026-02-01 00:59:59.999999+01', '2026-01-31T23:59:59.999999Z'],
    ['9999-12-31 23:59:59.999999+00', '9999-12-31T23:59:59.999999Z'],
    ['0001-01-01 00:00:00+00', '0001-01-01T00:00:00Z'],
    ['10000-01-01 00:00:00+00', '10000-01-01 00:00:00+00'],
    ['0044-03-15 12:00:00+00 BC', '0044-03-15 12:00:00+00 BC'],
    ['infinity', 'infinity'],
  ].map(([cell = '', http]): [TargetColumn, string, Written] => [column('timestamp_tz'), cell, { http, jsonl: cell }]),
];

test.each(['http', 'jsonl'] as const)('%s writes JSON and nothing else', (style) => {
  for (const [one, cell, wanted] of VALUES) {
    const gate = ValueGate.ofTarget(
      targetOf({ name: 't', fields: [], source_defined_primary_key: null } as never, { columns: [one] }),
      { nul: true, surrogates: true, unread_json: true },
    );
    const rows = [[cell]];
    const write = () => {
      gate?.takeAll(rows);
      return JSON.parse(jsonRowEncoder([one], STYLES[style])(rows[0]!)).v;
    };
    if (wanted === 'refused') expect(write).toThrow(`t: row 1: v has ${JSON.stringify(cell)}, which`);
    else expect([cell, write()]).toEqual([cell, wanted[style]]);
    // The writer itself refuses values that passed no check.
    if (wanted === 'refused' && !one.from)
      expect(() => jsonRowEncoder([one], STYLES[style])([cell])).toThrow('is not JSON');
  }
});
