import { DataError } from '../../../../contract/errors.ts';

/** A type of Avro with its names resolved. Specification 1.12. */
export type AvroType =
  | { kind: 'null' | 'boolean' | 'int' | 'long' | 'float' | 'double' | 'bytes' | 'string'; logical: AvroLogical | null }
  | { kind: 'fixed'; size: number; logical: AvroLogical | null }
  | { kind: 'enum'; symbols: string[] }
  | { kind: 'array' | 'map'; of: AvroType }
  | { kind: 'union'; of: AvroType[] }
  | AvroRecord;

export interface AvroRecord {
  kind: 'record';
  fields: { name: string; type: AvroType }[];
}

export interface AvroLogical {
  name: string;
  /** Digits after the point of a decimal. */
  scale: number;
}

const PRIMITIVES = new Set(['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string']);
/** By logical type, what it can annotate. An annotation of anything else is ignored, as the specification asks. */
const ANNOTATES: Record<string, string[]> = {
  decimal: ['bytes', 'fixed'],
  date: ['int'],
  'time-millis': ['int'],
  'time-micros': ['long'],
  'timestamp-millis': ['long'],
  'timestamp-micros': ['long'],
  'timestamp-nanos': ['long'],
  'local-timestamp-millis': ['long'],
  'local-timestamp-micros': ['long'],
  'local-timestamp-nanos': ['long'],
};
const MAX_DEPTH = 100;

type Json = Record<string, unknown>;

/** @param place the file, for messages. @throws DataError `malformed_avro` */
export function parseSchema(text: string, place: string): AvroType {
  const malformed = (what: string) => new DataError('malformed_avro', `${place}: the schema is not valid: ${what}`);
  const named = new Map<string, AvroType>();
  const list = (value: unknown, what: string): unknown[] => {
    if (!Array.isArray(value)) throw malformed(`${what} is not a list`);
    return value;
  };
  const resolve = (value: unknown, space: string, depth: number): AvroType => {
    if (depth > MAX_DEPTH) throw malformed(`it has more than ${MAX_DEPTH} levels`);
    const below = (inner: unknown, within = space) => resolve(inner, within, depth + 1);
    if (Array.isArray(value)) return { kind: 'union', of: value.map((one) => below(one)) };
    if (typeof value === 'string') {
      if (PRIMITIVES.has(value)) return { kind: value as 'null', logical: null };
      const found = named.get(value.includes('.') ? value : `${space}${value}`) ?? named.get(value);
      if (!found) throw malformed(`the type "${value}" is not defined`);
      return found;
    }
    if (typeof value !== 'object' || value === null) throw malformed('a type is neither a name nor an object');
    const json = value as Json;
    const kind = String(json.type);
    if (typeof json.type === 'object') return below(json.type);
    if (kind === 'array') return { kind, of: below(json.items) };
    if (kind === 'map') return { kind, of: below(json.values) };
    if (PRIMITIVES.has(kind)) return { kind: kind as 'null', logical: logicalOf(json, kind) };
    const [name, within] = fullName(json, space);
    const keep = <Type extends AvroType>(type: Type) => {
      named.set(name, type);
      return type;
    };
    if (kind === 'enum') return keep({ kind, symbols: list(json.symbols, 'symbols').map(String) });
    if (kind === 'fixed') return keep({ kind, size: Number(json.size), logical: logicalOf(json, kind) });
    if (kind !== 'record' && kind !== 'error') return below(kind);
    const record = keep<AvroRecord>({ kind: 'record', fields: [] });
    for (const field of list(json.fields, 'fields') as Json[]) {
      record.fields.push({ name: String(field.name), type: below(field.type, within) });
    }
    return record;
  };
  try {
    return resolve(JSON.parse(text), '', 0);
  } catch (error) {
    throw error instanceof SyntaxError ? malformed('it is not JSON') : error;
  }
}

/** The full name of a type, and the prefix of names within it. */
function fullName({ name, namespace }: Json, space: string): [string, string] {
  const own = String(name);
  const given = typeof namespace === 'string' && namespace !== '' ? `${namespace}.` : space;
  const full = own.includes('.') ? own : given + own;
  return [full, full.slice(0, full.lastIndexOf('.') + 1)];
}

function logicalOf({ logicalType, scale }: Json, kind: string): AvroLogical | null {
  const name = String(logicalType);
  if (!ANNOTATES[name]?.includes(kind)) return null;
  return { name, scale: typeof scale === 'number' ? scale : 0 };
}
