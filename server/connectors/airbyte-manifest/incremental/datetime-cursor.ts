import type { ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { microsOf, timestampText } from '../../cells/timestamp-text.ts';
import type { ReadProgress } from '../../kits/rest/progress.ts';
import type { DatetimeBasedCursor, DeclarativeStream, MinMaxDatetime } from '../components/stream-components.ts';
import { parseDuration, parseTime, PyDuration, PyTime, strftime, strptime } from '../interpolation/python-time.ts';
import type { Scope, Templates } from '../interpolation/template.ts';
import { pyText } from '../interpolation/python-literal.ts';
import { digitsOf } from '../../cells/json-cells.ts';

/** One step of a read, in microseconds. */
export interface Interval {
  start: number;
  /** The end that is requested. Services include it. */
  end: number;
  /** Start of the next interval. */
  next: number;
  is_last: boolean;
}

export interface ReadRange {
  /** Rows before it are not of this read; null: the service returns none of them. */
  floor: number | null;
  intervals: Iterable<Interval>;
}

/** The DatetimeBasedCursor of a stream, with its templates evaluated. */
export class DatetimeCursor {
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

  /** The canonical text of a record's cursor; null for no value; undefined for a value that is not a time. */
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

  /** What templates see as the state. @param normal the highest cursor; null: there is no state */
  stateOf(normal: string | null): Record<string, string> {
    if (normal === null) return {};
    return { [this.field]: strftime(new PyTime(microsOf(normal)), this.definition.datetime_format) };
  }

  /** A time in the form of `normal`. */
  textOf(micros: number): string {
    return timestampText(micros);
  }

  /** The limit of a window in the form of `normal`. */
  limit(text: string): string {
    return timestampText(day(text));
  }

  /** The interval as templates see it. */
  interval({ start, end }: Interval): Record<string, string> {
    const { partition_field_start, partition_field_end, datetime_format } = this.definition;
    return {
      [this.#text(partition_field_start) ?? 'start_time']: strftime(new PyTime(start), datetime_format),
      [this.#text(partition_field_end) ?? 'end_time']: strftime(new PyTime(end), datetime_format),
    };
  }

  /** @param sliced whether requests contain the interval: otherwise a read has a single one */
  range(progress: ReadProgress, window: ReadRequest['window'], sliced: boolean): ReadRange {
    const first = window?.start ? day(window.start) : this.#minMaxDatetime(this.definition.start_datetime);
    const until = Math.min(this.#end(), window?.end ? day(window.end) : Infinity);
    const reached = this.#reached(progress);
    const from = Math.max(first, reached ?? -Infinity);
    const { is_client_side_incremental, is_data_feed } = this.definition;
    const floor = window?.start || is_client_side_incremental || is_data_feed ? from : null;
    return { floor, intervals: this.#intervals(from, until, { sliced, window: window !== null }) };
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

function day(text: string): number {
  const micros = microsOf(text);
  if (!Number.isFinite(micros)) throw new ConfigurationError('invalid_start', `"${text.slice(0, 100)}" is not a time`);
  return micros;
}

/** Whether requests contain the interval. Otherwise each would return the whole stream. */
export function usesInterval({ retriever, incremental_sync: cursor }: DeclarativeStream): boolean {
  if (!cursor) return false;
  // Code may ask for it.
  if (cursor.python || retriever.requester.python) return true;
  if (cursor.start_time_option || cursor.end_time_option) return true;
  const { partition_field_start, partition_field_end } = cursor;
  const names = ['stream_interval', partition_field_start ?? 'start_time', partition_field_end ?? 'end_time'];
  const text = JSON.stringify([retriever.requester, retriever.job]);
  return names.some((name) => text.includes(name));
}
