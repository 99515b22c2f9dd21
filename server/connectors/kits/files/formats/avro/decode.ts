import { DataError } from '../../../../contract/errors.ts';
import type { LogicalType } from '../../../../contract/connector.ts';
import type { AvroBytes } from './bytes.ts';
import type { AvroLogical, AvroType } from './schema.ts';

/** Reads a value. @returns its cell: null, or the canonical text of the type */
type Decode = (bytes: AvroBytes) => string | null;

export interface AvroColumn {
  type: LogicalType;
  nullable: boolean;
  decode: Decode;
}

/** A text that stands for itself in JSON: of a number, a boolean, a list or an object. */
const RAW: ReadonlySet<LogicalType> = new Set(['integer', 'number', 'boolean', 'json', 'array']);
const DAY_MICROS = 86_400_000_000n;
const MICROS_PER_MILLI = 1000n;

/** How values of a type become cells. Unions of several types are JSON, like records, lists and maps. */
export function columnOf(type: AvroType): AvroColumn {
  if (type.kind !== 'union') return plainColumn(type);
  const branches = type.of.map(columnOf);
  const types = [...new Set(type.of.flatMap((one, at) => (one.kind === 'null' ? [] : [branches[at]!.type])))];
  const [only = 'string'] = types;
  const mixed = types.length > 1;
  const pick: Decode = (bytes) => {
    const index = bytes.size();
    const branch = branches[index];
    if (!branch) throw new RangeError(`a union has no branch ${index}`);
    const text = branch.decode(bytes);
    return mixed && text !== null ? json(branch.type, text) : text;
  };
  return { type: mixed ? 'json' : only, nullable: branches.some(({ nullable }) => nullable), decode: pick };
}

const json = (type: LogicalType, text: string | null): string =>
  text === null ? 'null' : RAW.has(type) && !/^-?(NaN|Infinity)$/.test(text) ? text : JSON.stringify(text);

function plainColumn(type: Exclude<AvroType, { kind: 'union' }>): AvroColumn {
  const column = (logical: LogicalType, decode: Decode, nullable = false) => ({ type: logical, nullable, decode });
  switch (type.kind) {
    case 'null':
      return column('string', () => null, true);
    case 'boolean':
      return column('boolean', (bytes) => (bytes.byte() === 1 ? 'true' : 'false'));
    case 'int':
    case 'long':
      return type.logical ? wholeLogical(type.logical) : column('integer', (bytes) => String(bytes.long()));
    case 'float':
      return column('number', (bytes) => numberText(bytes.float(), true));
    case 'double':
      return column('number', (bytes) => numberText(bytes.double(), false));
    case 'bytes':
      return binary((bytes) => bytes.take(bytes.size()), type.logical);
    case 'fixed':
      return binary((bytes) => bytes.take(type.size), type.logical);
    case 'string':
      return column('string', (bytes) => bytes.take(bytes.size()).toString('utf8'));
    case 'enum':
      return column('string', (bytes) => symbolOf(type.symbols, bytes.size()));
    case 'record':
      return column('json', recordText(type.fields.map(({ name, type: inner }) => ({ name, type: inner }))));
    default:
      return column('json', type.kind === 'array' ? listText(type.of) : mapText(type.of));
  }
}

function symbolOf(symbols: string[], index: number): string {
  const symbol = symbols[index];
  if (symbol === undefined) throw new RangeError(`an enum has no symbol ${index}`);
  return symbol;
}

function wholeLogical({ name }: AvroLogical): AvroColumn {
  const of = (type: LogicalType, text: (value: bigint) => string): AvroColumn => ({
    type,
    nullable: false,
    decode: (bytes) => text(BigInt(bytes.long())),
  });
  const zone = name.startsWith('local-') ? '' : '+00';
  switch (name.replace('local-', '')) {
    case 'date':
      return of('date', (days) => instantText(days * DAY_MICROS).slice(0, 10));
    case 'time-millis':
      return of('time', (ms) => instantText(ms * MICROS_PER_MILLI).slice(11));
    case 'time-micros':
      return of('time', (micros) => instantText(micros).slice(11));
    case 'timestamp-millis':
      return of(zone ? 'timestamp_tz' : 'timestamp', (ms) => instantText(ms * MICROS_PER_MILLI) + zone);
    case 'timestamp-micros':
      return of(zone ? 'timestamp_tz' : 'timestamp', (micros) => instantText(micros) + zone);
    default:
      return of(zone ? 'timestamp_tz' : 'timestamp', (nanos) => {
        if (nanos % MICROS_PER_MILLI === 0n) return instantText(nanos / MICROS_PER_MILLI) + zone;
        throw new RangeError('a time is finer than a microsecond');
      });
  }
}

/** `2026-01-31 23:59:59.5` */
function instantText(micros: bigint): string {
  const seconds = micros / 1_000_000n - (micros % 1_000_000n < 0n ? 1n : 0n);
  const fraction = micros - seconds * 1_000_000n;
  const date = new Date(Number(seconds) * 1000);
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() > 9999 || date.getUTCFullYear() < 1) {
    throw new RangeError('a date is not between the years 1 and 9999');
  }
  const text = date.toISOString().slice(0, 19).replace('T', ' ');
  return fraction === 0n ? text : `${text}.${String(fraction).padStart(6, '0').replace(/0+$/, '')}`;
}

/** The shortest text of the same number. */
function numberText(value: number, single: boolean): string {
  if (Object.is(value, -0)) return '0';
  if (!single || !Number.isFinite(value)) return String(value);
  for (let digits = 6; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}

function binary(take: (bytes: AvroBytes) => Buffer, logical: AvroLogical | null): AvroColumn {
  if (logical === null)
    return { type: 'binary', nullable: false, decode: (bytes) => `\\x${take(bytes).toString('hex')}` };
  return { type: 'number', nullable: false, decode: (bytes) => decimalText(take(bytes), logical.scale) };
}

/** Two's complement, highest byte first. */
function decimalText(bytes: Buffer, scale: number): string {
  const unscaled = bytes.length === 0 ? 0n : BigInt.asIntN(bytes.length * 8, BigInt(`0x${bytes.toString('hex')}`));
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0');
  const whole = digits.slice(0, digits.length - scale);
  return `${unscaled < 0n ? '-' : ''}${whole}${scale > 0 ? `.${digits.slice(-scale)}` : ''}`;
}

/** Types can contain themselves, so what they contain is looked at with its first value. */
function lazy(type: AvroType): (bytes: AvroBytes) => string {
  let column: AvroColumn | null = null;
  return (bytes) => {
    column ??= columnOf(type);
    return json(column.type, column.decode(bytes));
  };
}

function recordText(fields: { name: string; type: AvroType }[]): Decode {
  const parts = fields.map(({ name, type }) => ({ key: `${JSON.stringify(name)}:`, text: lazy(type) }));
  return (bytes) => `{${parts.map(({ key, text }) => key + text(bytes)).join(',')}}`;
}

function listText(of: AvroType): Decode {
  const text = lazy(of);
  return (bytes) => `[${blocks(bytes, () => text(bytes)).join(',')}]`;
}

function mapText(of: AvroType): Decode {
  const text = lazy(of);
  const entry = (bytes: AvroBytes) => `${JSON.stringify(bytes.take(bytes.size()).toString('utf8'))}:${text(bytes)}`;
  return (bytes) => `{${blocks(bytes, () => entry(bytes)).join(',')}}`;
}

const MAX_ITEMS = 8_000_000;

/** Lists and maps come in blocks; a negative count is followed by the size in bytes. */
function blocks(bytes: AvroBytes, read: () => string): string[] {
  const items: string[] = [];
  for (let count = bytes.size(); count !== 0; count = bytes.size()) {
    if (count < 0) bytes.size();
    for (let left = Math.abs(count); left > 0; left--) {
      items.push(read());
      if (items.length > MAX_ITEMS)
        throw new DataError('json_limit_exceeded', `a list has more than ${MAX_ITEMS} values`);
    }
  }
  return items;
}
