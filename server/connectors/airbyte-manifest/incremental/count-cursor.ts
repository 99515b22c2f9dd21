import { digitsOf } from '../../cells/json-cells.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import type { ReadProgress } from '../../kits/rest/progress.ts';
import type { IncrementingCountCursor } from '../components/cursor-components.ts';
import type { Scope, Templates } from '../interpolation/template.ts';
import { numberOf } from '../interpolation/values.ts';
import type { Injection } from '../requests/build-request.ts';
import type { Interval, ReadRange, StreamCursor } from './stream-cursor.ts';

/** Digits of a count in the form that sorts. */
const WIDTH = 30;

/** The IncrementingCountCursor of a stream: a number that only grows, such as an id. */
export class CountCursor implements StreamCursor {
  readonly isTime = false;
  readonly isFeed = false;
  readonly python = null;
  readonly field: string;
  readonly #start: number;

  constructor(
    private readonly definition: IncrementingCountCursor,
    templates: Templates,
    scope: Scope,
  ) {
    const own = { ...scope, parameters: definition.$parameters ?? {} };
    this.field = templates.text(definition.cursor_field, own) ?? '';
    if (this.field === '') throw new ConfigurationError('invalid_cursor', 'The manifest has no cursor field');
    const { start_value: given } = definition;
    const start = typeof given === 'string' ? numberOf(templates.value(given, own)) : (given ?? 0);
    if (start === null || !Number.isInteger(start) || start < 0)
      throw new ConfigurationError('invalid_start', `The start of the cursor is not a count: "${given}"`);
    this.#start = start;
  }

  normal(value: unknown): string | null | undefined {
    if (value === null || value === undefined || value === '') return null;
    const digits = typeof value === 'string' ? value : digitsOf(value);
    return digits !== null && isCount(digits) ? digits.padStart(WIDTH, '0') : undefined;
  }

  normalOf(text: string): string {
    if (isCount(text)) return text.padStart(WIDTH, '0');
    throw new ConfigurationError(
      'invalid_cursor',
      `"${text.slice(0, 100)}" is not a count. Set another cursor, or reset it.`,
    );
  }

  shown(normal: string): string {
    return String(BigInt(normal));
  }

  stateOf(normal: string | null): Record<string, unknown> {
    return normal === null ? {} : { [this.field]: Number(normal) };
  }

  textOf(position: number): string {
    return this.normalOf(String(position));
  }

  position(normal: string): number {
    return Number(normal);
  }

  limit(text: string): string {
    return this.normalOf(text);
  }

  interval({ start, end }: Interval): Record<string, unknown> {
    return { start, end };
  }

  injections({ start }: Interval): Injection[] {
    const { start_value_option: option } = this.definition;
    return option ? [{ option, value: start }] : [];
  }

  range({ cursor }: ReadProgress): ReadRange {
    const start = Math.max(this.#start, cursor === null ? 0 : Number(cursor));
    return { floor: null, intervals: [{ start, end: Infinity, next: null, is_last: true }] };
  }
}

const isCount = (text: string) => text.length <= WIDTH && /^\d+$/.test(text);
