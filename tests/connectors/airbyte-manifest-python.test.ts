import { expect, test } from 'bun:test';
import { Templates } from '../../server/connectors/airbyte-manifest/interpolation/template.ts';
import numbers from './jinja-numbers.json';
import slices from './jinja-slices.json';
import clamped from './cdk-clamped-windows.json';
import { DatetimeCursor } from '../../server/connectors/airbyte-manifest/incremental/datetime-cursor.ts';
import { NO_PROGRESS } from '../../server/connectors/kits/rest/progress.ts';

const templates = new Templates(() => new Date());

test('numbers are those of Jinja2', () => {
  // Rendered by Jinja2 3.1.6.
  for (const [template, expected] of numbers as [string, string][]) {
    expect([template, templates.text(template, {}) ?? '']).toEqual([template, expected]);
  }
  expect(() => templates.text('{{ 1 / 0 }}', {})).toThrow('division by zero');
  expect(() => templates.text('{{ 9007199254740991 + 1 }}', {})).toThrow('too many digits');
  expect(() => templates.text('{{ 1.5 | round(0, "up") }}', {})).toThrow('common, ceil or floor');
});

test('slices take the items that Jinja2 takes', () => {
  // Rendered by Jinja2 3.1.6. A text that is empty has no value.
  for (const [template, expected] of slices as [string, string][]) {
    expect([template, templates.text(template, {}) ?? '']).toEqual([template, expected]);
  }
  expect(() => templates.text('{{ [1, 2][::0] }}', {})).toThrow('the step of a slice cannot be 0');
});

// Rendered by Jinja2 3.1.6.
test.each([
  ['{% for a in [1, 2]: %}{{ a }}{% endfor %}', '12'],
  ['{% if 1: %}a{% elif 2: %}b{% else: %}c{% endif %}', 'a'],
  ['{%- for a in [1] if a: -%} {{ ":%" }} {%- endfor -%}', ':%'],
  ['{{ 1_000 + 2_3 }}', '1023'],
  ["{{ '1_000' ~ {'a_1_0': 1_0}.a_1_0 }}", '1_00010'],
  ['{{ [1,2,3][:2] }}{% if [1,2][1:] %}y{% endif %}', '[1, 2]y'],
  ['a {% raw %}{{ b["}}"] }} {% if %}{% endraw %} {{ 1 }}', 'a {{ b["}}"] }} {% if %} 1'],
  ['{% if 1 %}x: "{% raw %}{{ a }}{% endraw %}"{% endif %}', 'x: "{{ a }}"'],
  ['{% set ns = namespace(c="") %}{% for a in [1, 2] %}{% set ns.c = a %}{% endfor %}c{{ ns.c }}', 'c2'],
])('%s is rendered as by Jinja2', (template, expected) => {
  expect(templates.text(template, {})).toBe(expected);
});

// Formatted by Python 3.
test.each([
  ['2024-01-01T00:00:00Z', ' 1|00|01|01/01/24|00:00|001|12|AM|Mon|Jan|24|1|1|2024-01-01|00:00:00'],
  ['2024-02-29T13:05:09Z', '29|08|09|02/29/24|13:05|060|01|PM|Thu|Feb|24|4|4|2024-02-29|13:05:09'],
  ['2023-01-01T12:00:00Z', ' 1|01|00|01/01/23|12:00|001|12|PM|Sun|Jan|23|0|7|2023-01-01|12:00:00'],
  ['2026-12-31T23:59:59Z', '31|52|52|12/31/26|23:59|365|11|PM|Thu|Dec|26|4|4|2026-12-31|23:59:59'],
  ['2022-01-02T00:07:00Z', ' 2|01|00|01/02/22|00:07|002|12|AM|Sun|Jan|22|0|7|2022-01-02|00:07:00'],
])('format_datetime formats %s as strftime does', (at, expected) => {
  const format = '%e|%U|%W|%D|%R|%j|%I|%p|%a|%b|%y|%w|%u|%F|%T';
  expect(templates.text(`{{ ">" ~ format_datetime("${at}", "${format}") }}`, {})).toBe(`>${expected}`);
});

test('a directive that is not supported is refused', () => {
  expect(() => templates.text('{{ format_datetime("2024-01-01T00:00:00Z", "%G-%V") }}', {})).toThrow(
    'the directive %G of strftime is not supported',
  );
});

type Optional = string | null;
type Clamped = [
  target: string,
  weekday: Optional,
  start: string,
  end: string,
  step: Optional,
  granularity: Optional,
  reached: Optional,
  intervals: string,
];
test('clamped intervals are those of the CDK', () => {
  // Made with airbyte-cdk 7.39.1.
  expect(clamped.length).toBeGreaterThan(300);
  for (const row of clamped as Clamped[]) {
    const [target, weekday, start, end, step, cursor_granularity, reached, expected] = row;
    const definition = {
      type: 'DatetimeBasedCursor' as const,
      cursor_field: 'at',
      datetime_format: '%Y-%m-%dT%H:%M:%SZ',
      cursor_datetime_formats: [],
      start_datetime: { type: 'MinMaxDatetime' as const, datetime: start, datetime_format: '' },
      end_datetime: { type: 'MinMaxDatetime' as const, datetime: end, datetime_format: '' },
      clamping: { target, target_details: { weekday } },
      step,
      cursor_granularity,
    };
    const known = new DatetimeCursor(definition, templates, {}, () => new Date());
    const state = reached ? { cursor: known.normalOf(reached), complete: true } : {};
    const { intervals } = known.range({ ...NO_PROGRESS, ...state }, null, true);
    const found = Array.from(intervals, (one) => Object.values(known.interval(one)).join('..')).join(' ');
    expect([...row.slice(0, -1), found]).toEqual([...row.slice(0, -1), expected]);
  }
});
