import type { ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { microsOf, timestampText } from '../../cells/timestamp-text.ts';
import type { ReadProgress } from '../../kits/rest/progress.ts';
import type { DatetimeBasedCursor, MinMaxDatetime } from '../components/cursor-components.ts';
import type { DeclarativeStream } from '../components/stream-components.ts';
import { parseDuration, parseTime, PyDuration, PyTime, strftime, strptime } from '../interpolation/python-time.ts';
import type { Scope, Templates } from '../interpolation/template.ts';
import type { Injection } from '../requests/build-request.ts';
import { type Clamp, clampOf } from './clamping.ts';
import type { Interval, ReadRange, StreamCursor } from './stream-cursor.ts';
import { pyText } from '../interpolation/python-literal.ts';
import { digitsOf } from '../../cells/json-cells.ts';

/** The DatetimeBasedCursor of a stream, with its templates evaluated. */
export class DatetimeCursor implements StreamCursor {
  readonly isTime = true;
  readonly field: string;
  readonly #scope: Scope;

  constructor(
    readonly definition: DatetimeBasedCursor,
    private readonly templates: Templates,
    scope: Scope,
    private readonly now: () => Date,
  ) {
    this.#scope = { ...scope, parameters: definition.$parameters ?? {} };
    this.field = this.#text(definition.cursor_field) ?? '';
    if (this.field === '') throw new ConfigurationError('invalid_cursor', 'The manifest has no cursor field');
  }

  get isFeed(): boolean {
    return this.definition.is_data_feed === true;
  }

  get python(): Record<string, unknown> | null {
    return this.definition.python ?? null;
  }

  normalOf(text: string): string {
    return normalOf(text);
  }

  shown(normal: string): string {
    return normal;
  }

  normal(value: unknown): string | null | undefined {
    if (value === null || value === undefined || value === '') return null;
    const text = typeof value === 'string' ? value : (digitsOf(value) ?? pyText(value));
    const { cursor_datetime_formats: formats, datetime_format } = this.definition;
    for (const format of formats.length > 0 ? formats : [datetime_format]) {
      const time = strptime(text, format);
      if (time) return timestampText(time.micros);
    }
    const time = parseTime(digitsOf(value) === null ? text : Number(text));
    return time ? timestampText(time.micros) : undefined;
  }

  stateOf(normal: string | null): Record<string, string> {
    if (normal === null) return {};
    return { [this.field]: strftime(new PyTime(microsOf(normal)), this.definition.datetime_format) };
  }

  textOf(micros: number): string {
    return timestampText(micros);
  }

  position(normal: string): number {
    return microsOf(normal);
  }

  limit(text: string): string {
    return timestampText(day(text));
  }

  interval({ start, end }: Interval): Record<string, string> {
    const { partition_field_start, partition_field_end, datetime_format } = this.definition;
    return {
      [this.#text(partition_field_start) ?? 'start_time']: strftime(new PyTime(start), datetime_format),
      [this.#text(partition_field_end) ?? 'end_time']: strftime(new PyTime(end), datetime_format),
    };
  }

  injections(interval: Interval): Injection[] {
    const { start_time_option, end_time_option } = this.definition;
    const [start, end] = Object.values(this.interval(interval));
    return [
      ...(start_time_option ? [{ option: start_time_option, value: start }] : []),
      ...(end_time_option ? [{ option: end_time_option, value: end }] : []),
    ];
  }

  range(progress: ReadProgress, window: ReadRequest['window'], sliced: boolean): ReadRange {
    const first = window?.start ? day(window.start) : this.#minMaxDatetime(this.definition.start_datetime);
    const until = Math.min(this.#end(), window?.end ? day(window.end) : Infinity);
    const reached = this.#reached(progress);
    const from = Math.max(first, reached ?? -Infinity);
    const { is_client_side_incremental, is_data_feed } = this.definition;
    const floor = window?.start || is_client_side_incremental || is_data_feed ? from : null;
    const { clamping } = this.definition;
    const intervals = clamping
      ? this.#clamped(clampOf(clamping, this.templates, this.#scope), { from, until, sliced, window: window !== null })
      : this.#intervals(from, until, { sliced, window: window !== null });
    return { floor, intervals };
  }

  #end(): number {
    const { end_datetime } = this.definition;
    return end_datetime ? this.#minMaxDatetime(end_datetime) : this.now().getTime() * 1000;
  }

  /** Where a read continues: at its progress when it was cut short, otherwise before it by the lookback window. */
  #reached({ cursor, read_until, complete }: ReadProgress): number | null {
    if (!complete && read_until !== null) return microsOf(read_until);
    if (cursor === null) return null;
    // A cursor ahead of the clock says nothing about records that are still to come before it.
    const at = Math.min(microsOf(cursor), read_until === null ? Infinity : microsOf(read_until));
    const back = this.#text(this.definition.lookback_window);
    return complete && back !== null ? new PyTime(at).plus(this.#duration(back), -1).micros : at;
  }

  *#intervals(
    from: number,
    until: number,
    { sliced, window }: { sliced: boolean; window: boolean },
  ): Generator<Interval> {
    if (from > until || (window && from === until) || this.#isEmpty(from, until)) return;
    const granularity = this.definition.cursor_granularity
      ? this.#duration(this.definition.cursor_granularity).micros
      : 0;
    const step = this.#text(this.definition.step);
    const length = step === null ? null : this.#duration(step);
    const last = window ? Math.max(from, until - granularity) : until;
    if (length === null || !sliced || (length.micros <= 0 && length.months <= 0)) {
      yield { start: from, end: last, next: until, is_last: true };
      return;
    }
    for (let at = from; ; ) {
      const next = new PyTime(at).plus(length, 1).micros;
      if (next >= until || this.#isEmpty(next, last)) {
        yield { start: at, end: last, next: until, is_last: true };
        return;
      }
      yield { start: at, end: next - granularity, next, is_last: false };
      at = next;
    }
  }

  /** As Airbyte: the limits of all intervals are those of days, weeks or months. A window is widened to them. */
  #clamped(
    clamp: Clamp,
    { from, until, sliced, window }: { from: number; until: number; sliced: boolean; window: boolean },
  ): Interval[] {
    const given = this.definition.cursor_granularity ? this.#duration(this.definition.cursor_granularity).micros : null;
    const step = this.#text(this.definition.step);
    const length = step === null || !sliced ? null : this.#duration(step);
    const after = (at: number) => (length === null ? Infinity : new PyTime(at).plus(length, 1).micros);
    const whole = window ? Math.min(clamp.up(until), clamp.down(this.#end())) : clamp.down(until);
    const last = whole - (given ?? clamp.granularity);
    const first = window ? clamp.down(from) : clamp.up(from);
    if (first > last || this.#isEmpty(first, last)) return [];
    if (after(first) >= last)
      return [{ start: first, end: given === null ? clamp.up(last) : last, next: whole, is_last: true }];
    const intervals: Interval[] = [];
    for (let at = first, isOver = false; !isOver; ) {
      const wanted = Math.min(after(at), last);
      const end = wanted === last ? last : clamp.up(wanted);
      isOver = end === last;
      if (at >= end) break;
      intervals.push({ start: at, end: isOver ? end : end - (given ?? 0), next: end, is_last: false });
      at = end;
    }
    const final = intervals.at(-1);
    return final ? [...intervals.slice(0, -1), { ...final, next: whole, is_last: true }] : [];
  }

  /** For services that require the start to be before the end. */
  #isEmpty(start: number, end: number): boolean {
    const { is_compare_strictly, datetime_format: format } = this.definition;
    return is_compare_strictly === true && strftime(new PyTime(start), format) === strftime(new PyTime(end), format);
  }

  #minMaxDatetime({ datetime, ...limits }: MinMaxDatetime): number {
    const format = 'datetime_format' in limits ? limits.datetime_format : '';
    const found = this.#time(datetime, format);
    const least = 'min_datetime' in limits && limits.min_datetime ? this.#time(limits.min_datetime, format) : -Infinity;
    const most = 'max_datetime' in limits && limits.max_datetime ? this.#time(limits.max_datetime, format) : Infinity;
    return Math.min(Math.max(found, least), most);
  }

  #time(template: string, format: string): number {
    const text = this.#text(template);
    if (text === null)
      throw new ConfigurationError('missing_value', `The configuration has no time for ${template.slice(0, 200)}`);
    const time = strptime(text, format || this.definition.datetime_format) ?? parseTime(text);
    if (!time)
      throw new ConfigurationError(
        'invalid_start',
        `"${text.slice(0, 100)}" is not a time in the format ${format || this.definition.datetime_format}`,
      );
    return time.micros;
  }

  #duration(text: string): PyDuration {
    const duration = parseDuration(text);
    if (!duration)
      throw new ConfigurationError('invalid_duration', `"${text.slice(0, 100)}" is not an ISO 8601 duration`);
    return duration;
  }

  #text(template: string | null | undefined): string | null {
    return template === null || template === undefined ? null : this.templates.text(template, this.#scope);
  }
}

/** The sortable form of a stored cursor. @throws ConfigurationError when it is not a time */
export function normalOf(text: string): string {
  const micros = /^-?\d{9,}$/.test(text) ? Number(text) * 1_000_000 : microsOf(text);
  if (Number.isFinite(micros)) return timestampText(micros);
  throw new ConfigurationError(
    'invalid_cursor',
    `"${text.slice(0, 100)}" is not a value of the cursor. Set another cursor, or reset it.`,
  );
}

function day(text: string): number {
  const micros = microsOf(text);
  if (!Number.isFinite(micros)) throw new ConfigurationError('invalid_start', `"${text.slice(0, 100)}" is not a time`);
  return micros;
}

/** Whether requests contain the interval. Otherwise each would return the whole stream. */
export function usesInterval({ retriever, incremental_sync: cursor }: DeclarativeStream): boolean {
  if (cursor?.type !== 'DatetimeBasedCursor') return false;
  // Code may ask for it.
  if (cursor.python || retriever.requester.python) return true;
  if (cursor.start_time_option || cursor.end_time_option) return true;
  const { partition_field_start, partition_field_end } = cursor;
  const names = ['stream_interval', partition_field_start ?? 'start_time', partition_field_end ?? 'end_time'];
  const text = JSON.stringify([retriever.requester, retriever.job]);
  return names.some((name) => text.includes(name));
}
