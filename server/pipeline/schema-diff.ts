import type { Field, LogicalType, StreamSchema } from '../connectors/contract/connector.ts';
import { fieldName } from './transfer-plan.ts';

export type ChangeSubject = 'stream' | 'field' | 'primary_key' | 'cursor';

/** What was or is there: `true` for a stream, type of a field, paths of a key, path of a cursor. Null: nothing. */
export type Fact = true | FieldFact | string[] | string[][] | null;
export interface FieldFact {
  type: LogicalType;
  source_type: string | null;
}

/** One thing about a stream that is not as it was. */
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

/** Null: the stream is not there. Of a stream that comes or goes the fields are not told one by one. Pure. */
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

/** Where the source only proposes a cursor, another proposal changes nothing. */
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

/** Both are about the same thing. */
export const sameThing = (one: SchemaChange, other: SchemaChange) => keyOf(one) === keyOf(other);

/**
 * Changes that waited and the ones that came after them, as changes from the first state to the last: what was taken
 * back is gone. Pure.
 */
export function composeChanges(earlier: readonly SchemaChange[], later: readonly SchemaChange[]): SchemaChange[] {
  const composed = new Map<string, SchemaChange>(earlier.map((change) => [keyOf(change), change]));
  for (const change of later) {
    const before = composed.get(keyOf(change));
    composed.set(keyOf(change), before ? { ...change, before: before.before } : change);
  }
  return Array.from(composed.values()).filter((change) => !Bun.deepEquals(change.before, change.after));
}

/** Types that hold every value of a type, in the same order where it is the order that counts. */
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

/** A column of the first type can be made one of the second, and no value is lost. */
export const widens = (before: LogicalType, after: LogicalType) => before === after || WIDER[before].includes(after);

/** A fact in words, as users see it. */
export function factText(fact: Fact): string | null {
  if (fact === null || fact === true) return null;
  if (!Array.isArray(fact)) return fact.source_type ?? fact.type;
  return fact.some(Array.isArray) ? (fact as string[][]).map(fieldName).join(', ') : fieldName(fact as string[]);
}
