import type { StreamRow } from '../../db/schema/index.ts';
import type { Field, LogicalType, Masking, StreamSchema } from '../connectors/contract/connector.ts';
import { canBeWrittenAs } from '../connectors/cells/casts.ts';
import { type FieldChoice, fieldName } from './transfer-plan.ts';

/** A user's changes to a field in the catalog of a source, for all of its connections. Absent keys change nothing. */
export type FieldOverride = {
  /** Type of the column in the destination. */
  type?: LogicalType;
  destination_name?: string;
  description?: string;
  is_primary_key?: boolean;
  is_cursor?: boolean;
  masking?: Masking;
  excluded?: boolean;
  nullable?: boolean;
};

/** By field name: the path joined by dots. */
export type Overrides = Record<string, FieldOverride>;

/**
 * Applies overridden keys, cursors and nullability to a stream. `withCatalogChoices` applies the overrides that concern
 * the destination: names, types, masks, exclusions. Overrides of removed fields have no effect. Pure.
 */
export function applyOverrides(schema: StreamSchema, overrides: Overrides): StreamSchema {
  if (Object.keys(overrides).length === 0) return schema;
  const of = (field: Field) => overrides[fieldName(field.path)] ?? {};
  const cursor = schema.fields.find((field) => of(field).is_cursor === true);
  const withoutDefault = schema.fields.some(
    (field) => of(field).is_cursor === false && fieldName(field.path) === nameOf(schema.default_cursor_field),
  );
  return {
    ...schema,
    fields: schema.fields.map((field) => ({
      ...field,
      nullable: of(field).nullable ?? field.nullable,
      is_primary_key: of(field).is_primary_key ?? field.is_primary_key,
      is_cursor_candidate: of(field).is_cursor ?? field.is_cursor_candidate,
    })),
    default_cursor_field: cursor?.path ?? (withoutDefault ? null : schema.default_cursor_field),
    source_defined_primary_key: overriddenKey(schema, overrides),
  };
}

const nameOf = (path: string[] | null) => path && fieldName(path);

/** The source's own key fields keep their order and come first. */
function overriddenKey(schema: StreamSchema, overrides: Overrides): string[][] | null {
  const own = schema.source_defined_primary_key ?? [];
  const said = (path: string[]) => overrides[fieldName(path)]?.is_primary_key;
  const isOwn = (path: string[]) => own.some((one) => fieldName(one) === fieldName(path));
  const added = schema.fields.map(({ path }) => path).filter((path) => said(path) === true && !isOwn(path));
  const key = [...own.filter((path) => said(path) !== false), ...added];
  return key.length > 0 ? key : null;
}

/**
 * The settings of a connection's stream, with the overrides of the catalog wherever the connection sets nothing itself.
 * A field setting at its default (selected, no name, no type, no mask) sets nothing, so an exclusion or mask of the
 * catalog holds when a connection merely lists the field. Neither does a stored key or cursor that equals the discovered
 * one, but a cursor with a state is kept, since the state belongs to it. Pure.
 */
export function withCatalogChoices(stream: StreamRow, discovered: StreamSchema, overrides: Overrides): StreamRow {
  if (Object.keys(overrides).length === 0) return stream;
  const schema = applyOverrides(discovered, overrides);
  const followsKey = Bun.deepEquals(stream.primary_key, discovered.source_defined_primary_key);
  const followsCursor =
    stream.state === null &&
    stream.cursor_field !== null &&
    Bun.deepEquals(stream.cursor_field, discovered.default_cursor_field);
  return {
    ...stream,
    fields: effectiveFields(stream.fields as FieldChoice[], discovered.fields, overrides),
    primary_key: followsKey ? schema.source_defined_primary_key : stream.primary_key,
    cursor_field: followsCursor ? schema.default_cursor_field : stream.cursor_field,
  };
}

/** The settings of fields, with those of the catalog wherever the stream sets nothing itself. Pure. */
export function effectiveFields(
  own: readonly FieldChoice[],
  discovered: readonly Field[],
  overrides: Overrides,
): FieldChoice[] {
  const named = new Map(own.map((choice) => [fieldName(choice.path), choice]));
  for (const { path } of discovered) {
    const name = fieldName(path);
    const override = overrides[name];
    if (override) named.set(name, mergeChoice(named.get(name) ?? { ...UNTOUCHED, path }, override));
  }
  return [...named.values()];
}

const UNTOUCHED = { selected: true, destination_name: null, destination_type: null, masking: 'none' as const };

const mergeChoice = (choice: FieldChoice, override: FieldOverride): FieldChoice => ({
  path: choice.path,
  selected: choice.selected && override.excluded !== true,
  destination_name: choice.destination_name ?? override.destination_name ?? null,
  destination_type: choice.destination_type ?? override.type ?? null,
  masking: choice.masking === 'none' ? (override.masking ?? 'none') : choice.masking,
});

const SORTED: readonly LogicalType[] = ['string', 'integer', 'number', 'date', 'timestamp', 'timestamp_tz'];
const WITHOUT_KEYS: readonly LogicalType[] = ['json', 'array'];

/** Why an override does not fit the field, or null if it does. Pure. */
export function incompatibility(field: Field, override: FieldOverride): string | null {
  const { type, is_cursor, is_primary_key } = override;
  if (type && type !== field.type && !canBeWrittenAs(field.type, type)) {
    return `${field.type} cannot be written as ${type}`;
  }
  if (is_cursor && !field.is_cursor_candidate && !SORTED.includes(field.type)) {
    return `${field.type} cannot be a cursor: its values have no order`;
  }
  return is_primary_key && WITHOUT_KEYS.includes(field.type) ? `${field.type} cannot be part of a key` : null;
}
