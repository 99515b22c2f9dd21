import type { Field, LogicalType, StreamSchema } from '../connectors/contract/connector.ts';
import { fieldName } from './transfer-plan.ts';

export type ChangeSubject = 'stream' | 'field' | 'primary_key' | 'cursor';

/** The state before or after a change: `true` for a stream, else the field, key or cursor. Null: it does not exist. */
export type Fact = true | FieldFact | string[] | string[][] | null;
export interface FieldFact {
  type: LogicalType;
  source_type: string | null;
}

/** One change of a stream. */
export interface SchemaChange {
  namespace: string | null;
  stream_name: string;
  subject: ChangeSubject;
  field_path: string[] | null;
  before: Fact;
  after: Fact;
}

const NAMES = {
  stream: ['stream_added', 'stream_removed', 'stream_changed'],
  field: ['field_added', 'field_removed', 'field_type_changed'],
  primary_key: ['primary_key_changed', 'primary_key_changed', 'primary_key_changed'],
  cursor: ['cursor_changed', 'cursor_changed', 'cursor_changed'],
} as const;

export const changeName = ({ subject, before, after }: Pick<SchemaChange, 'subject' | 'before' | 'after'>) =>
  NAMES[subject][before === null ? 0 : after === null ? 1 : 2];

/** Null: the stream does not exist. The fields of an added or removed stream are not listed. Pure. */
export function diffStream(before: StreamSchema | null, after: StreamSchema | null): SchemaChange[] {
  const stream = after ?? before;
  if (!stream) return [];
  const change = (subject: ChangeSubject, facts: Pick<SchemaChange, 'before' | 'after'>, path?: string[]) => ({
    namespace: stream.namespace,
    stream_name: stream.name,
    subject,
    field_path: path ?? null,
    ...facts,
  });
  if (!before || !after) return [change('stream', { before: before && true, after: after && true })];
  const changes = diffFields(before.fields, after.fields).map(({ path, ...facts }) => change('field', facts, path));
  const keys = { before: before.source_defined_primary_key, after: after.source_defined_primary_key };
  if (!Bun.deepEquals(keys.before, keys.after)) changes.push(change('primary_key', keys));
  const cursors = { before: ownCursor(before), after: ownCursor(after) };
  if (!Bun.deepEquals(cursors.before, cursors.after)) changes.push(change('cursor', cursors));
  return changes;
}

/** Null if the source only proposes a cursor: another proposal changes nothing. */
const ownCursor = (stream: StreamSchema) => (stream.source_defined_cursor ? stream.default_cursor_field : null);

function diffFields(before: Field[], after: Field[]) {
  const facts = (fields: Field[]) => new Map(fields.map((field) => [JSON.stringify(field.path), factOf(field)]));
  const [old, now] = [facts(before), facts(after)];
  return [...new Set([...old.keys(), ...now.keys()])]
    .map((key) => ({
      path: JSON.parse(key) as string[],
      before: old.get(key) ?? null,
      after: now.get(key) ?? null,
    }))
    .filter((one) => !Bun.deepEquals(one.before, one.after));
}

const factOf = ({ type, source_type }: Field): FieldFact => ({ type, source_type });

const keyOf = ({ namespace, stream_name, subject, field_path }: SchemaChange) =>
  JSON.stringify([namespace, stream_name, subject, field_path]);

/** Whether both concern the same stream, field, key or cursor. */
export const sameThing = (one: SchemaChange, other: SchemaChange) => keyOf(one) === keyOf(other);

/**
 * Merges waiting changes with later ones into changes from the first state to the last. A change that was reverted
 * disappears. Pure.
 */
export function composeChanges(earlier: readonly SchemaChange[], later: readonly SchemaChange[]): SchemaChange[] {
  const composed = new Map<string, SchemaChange>(earlier.map((change) => [keyOf(change), change]));
  for (const change of later) {
    const before = composed.get(keyOf(change));
    composed.set(keyOf(change), before ? { ...change, before: before.before } : change);
  }
  return Array.from(composed.values()).filter((change) => !Bun.deepEquals(change.before, change.after));
}

/** Types that hold every value of a type. */
const WIDER: Record<LogicalType, readonly LogicalType[]> = {
  string: [],
  integer: ['number', 'string'],
  number: ['string'],
  boolean: ['string'],
  date: ['timestamp', 'timestamp_tz', 'string'],
  timestamp: ['string'],
  timestamp_tz: ['string'],
  time: ['string'],
  json: ['string'],
  array: ['json', 'string'],
  binary: ['string'],
};

/** Whether a column can change from the first type to the second without losing values. */
export const widens = (before: LogicalType, after: LogicalType) => before === after || WIDER[before].includes(after);

/** A fact in words, as users see it. */
export function factText(fact: Fact): string | null {
  if (fact === null || fact === true) return null;
  if (!Array.isArray(fact)) return fact.source_type ?? fact.type;
  return fact.some(Array.isArray) ? (fact as string[][]).map(fieldName).join(', ') : fieldName(fact as string[]);
}
