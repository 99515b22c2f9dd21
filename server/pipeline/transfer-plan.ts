import type { ConnectionRow, StreamRow } from '../../db/schema/index.ts';
import type {
  AnySource,
  Field,
  Filter,
  LogicalType,
  Masking,
  ReadColumn,
  ReadRequest,
  StreamSchema,
  TargetColumn,
} from '../connectors/contract/connector.ts';
import { canBeWrittenAs } from '../connectors/cells/casts.ts';
import { ConfigurationError, SchemaChangedError } from '../connectors/contract/errors.ts';
import { type FieldMapping, mappedFields, mappedTarget } from './field-mapping.ts';
import { givesChanges } from './stream-defaults.ts';

/** A column from source to destination, and the transformations that the engine performs. */
export interface PlannedColumn {
  field: Field;
  target: TargetColumn;
  /** Applied by the source in its query. */
  pushed: Masking;
  /** Applied by the engine, row by row. */
  masking: Masking;
  /** Applied by the engine before the masking; null: the connection maps no fields. */
  mapping: FieldMapping | null;
}

export interface TransferPlan {
  columns: PlannedColumn[];
  /** Filters that the source applies. */
  pushed_filters: Filter[];
  /** Filters that the engine applies; `index` is the column, which may be an extra one. */
  filters: { index: number; field: Field; filter: Filter }[];
  /** Columns read only for filters. They follow `columns` and are dropped before the write. */
  extra: Field[];
  /** The engine changes no value, so bytes may pass through. */
  untouched: boolean;
  primary_key: string[];
  cursor_column: string | null;
}

/** A field as a connection configures it: ConnectionField of the API. */
export interface FieldChoice {
  path: string[];
  selected: boolean;
  destination_name: string | null;
  destination_type: LogicalType | null;
  masking: Masking;
}

export const fieldName = (path: string[]) => path.join('.');
const samePath = (a: string[], b: string[]) => a.length === b.length && a.every((part, index) => part === b[index]);

const NO_PUSHDOWN: AnySource['pushdown'] = { masking: ['none'], filters: false };

/**
 * Decides which columns are loaded, under which names and types, and whether the source or the engine transforms them.
 * Pure.
 * @throws SchemaChangedError if a selected field or a key no longer exists in the source.
 */
export function planTransfer(input: { source: AnySource; schema: StreamSchema; stream: StreamRow }): TransferPlan {
  const { schema, stream } = input;
  const source = schema.change_log ? { ...input.source, pushdown: NO_PUSHDOWN } : input.source;
  const choices = stream.fields as FieldChoice[];
  for (const choice of choices) if (choice.selected) requireField(schema, choice.path);
  const mappings = stream.mapping as FieldMapping[] | null;
  const columns = mappings ? mappedColumns({ ...input, source }, mappings) : selectedColumns({ ...input, source });
  const filters = stream.filters as Filter[];
  const extra: Field[] = [];
  const engineFilters = source.pushdown.filters
    ? []
    : filters.map((filter) => placeFilter({ schema, columns, extra, filter }));
  return {
    columns,
    pushed_filters: source.pushdown.filters ? filters : [],
    filters: engineFilters,
    extra,
    untouched: engineFilters.length === 0 && columns.every((column) => column.masking === 'none' && !column.mapping),
    primary_key: mappings
      ? mappings.filter((one) => one.is_match_key).map((one) => one.destination_field)
      : keyPaths(schema, stream).map((path) => targetName(columns, schema, path)),
    cursor_column: stream.cursor_field ? optionalName(columns, stream.cursor_field) : null,
  };
}

interface PlanInput {
  source: AnySource;
  schema: StreamSchema;
  stream: StreamRow;
}

const choiceOf = (stream: StreamRow, field: Field) =>
  (stream.fields as FieldChoice[]).find((one) => samePath(one.path, field.path));

const selectedColumns = ({ source, schema, stream }: PlanInput): PlannedColumn[] =>
  schema.fields
    .map((field) => ({ field, choice: choiceOf(stream, field) }))
    .filter(({ choice }) => choice?.selected !== false)
    .map(({ field, choice }) => planColumn(source, field, choice));

/** The mapping alone defines the columns. A masked field stays masked under any name. */
const mappedColumns = ({ source, schema, stream }: PlanInput, mappings: FieldMapping[]): PlannedColumn[] =>
  mappedFields(schema, mappings).map((mapped) => {
    const column = planColumn(source, mapped.field, choiceOf(stream, mapped.field));
    const target = mappedTarget(mapped);
    const masked = column.pushed !== 'none' || column.masking !== 'none';
    return { ...column, mapping: mapped.mapping, target: masked ? { ...column.target, name: target.name } : target };
  });

/** The effective key: that of the connection, else that of the source. */
export const keyPaths = (schema: StreamSchema, stream: Pick<StreamRow, 'primary_key'>): string[][] =>
  stream.primary_key?.length ? stream.primary_key : (schema.source_defined_primary_key ?? []);

/** Null for CDC: a log has its own order, even if the stream was read by a cursor before. */
export const cursorPath = (
  schema: StreamSchema,
  stream: Pick<StreamRow, 'cursor_field' | 'sync_mode' | 'dataset_sql'>,
): string[] | null => (givesChanges(schema, stream) ? null : (stream.cursor_field ?? schema.default_cursor_field));

function planColumn(source: AnySource, field: Field, choice: FieldChoice | undefined): PlannedColumn {
  const masking = choice?.masking ?? 'none';
  const pushed = source.pushdown.masking.includes(masking) ? masking : 'none';
  const masked = masking !== 'none';
  const retyped = choice?.destination_type ?? null;
  if (retyped && !masked && !canBeWrittenAs(field.type, retyped)) throw incompatible(field, retyped);
  // A value that the source masks is a text of the source, so its column can still be copied as bytes.
  const native = masked && pushed === masking ? 'text' : masked || retyped ? null : field.source_type;
  return {
    field,
    pushed,
    masking: pushed === masking ? 'none' : masking,
    mapping: null,
    target: {
      name: choice?.destination_name ?? fieldName(field.path),
      type: masked ? 'string' : (retyped ?? field.type),
      source_type: native,
      dialect: native === null ? null : field.dialect,
      nullable: field.nullable,
      ...(masked && { masked }),
      ...(retyped && !masked && { from: { type: field.type, source_type: field.source_type, dialect: field.dialect } }),
    },
  };
}

const incompatible = ({ path, type }: Field, retyped: LogicalType) =>
  new ConfigurationError(
    'type_incompatible',
    `${fieldName(path)}: ${type} cannot be written as ${retyped}. Change the destination type of the field`,
  );

function requireField(schema: StreamSchema, path: string[]): Field {
  const field = schema.fields.find((one) => samePath(one.path, path));
  if (!field) {
    throw new SchemaChangedError(
      'field_missing',
      `Field ${fieldName(path)} of ${schema.name} no longer exists in the source. Review the schema change`,
    );
  }
  return field;
}

function placeFilter(input: { schema: StreamSchema; columns: PlannedColumn[]; extra: Field[]; filter: Filter }) {
  const { schema, columns, extra, filter } = input;
  const field = requireField(schema, filter.field.split('.'));
  // Filters compare unmasked values, so a column that the source masks is read a second time without the mask.
  const shown = columns.findIndex((column) => column.field === field && column.pushed === 'none');
  if (shown >= 0) return { index: shown, field, filter };
  extra.push(field);
  return { index: columns.length + extra.length - 1, field, filter };
}

const optionalName = (columns: PlannedColumn[], path: string[]) =>
  columns.find((column) => samePath(column.field.path, path))?.target.name ?? null;

function targetName(columns: PlannedColumn[], schema: StreamSchema, path: string[]): string {
  const name = optionalName(columns, path);
  if (name === null) {
    throw new SchemaChangedError(
      'key_not_selected',
      `Field ${fieldName(path)} of ${schema.name} is part of its key and must be selected`,
    );
  }
  return name;
}

/** The request to the source. */
export function readRequest(input: {
  plan: TransferPlan;
  schema: StreamSchema;
  stream: StreamRow;
  state: ReadRequest['state'];
  window: ReadRequest['window'];
}): ReadRequest {
  const { plan, schema, stream, state, window } = input;
  const columns: ReadColumn[] = [
    ...plan.columns.map(({ field, pushed }) => ({ field, masking: pushed })),
    ...plan.extra.map((field) => ({ field, masking: 'none' as const })),
  ];
  return {
    stream: schema,
    columns,
    filters: plan.pushed_filters,
    sync_mode: stream.sync_mode,
    cursor_field: stream.sync_mode === 'incremental' || window ? cursorPath(schema, stream) : null,
    primary_key: keyPaths(schema, stream),
    state,
    window,
  };
}

/** The destination table of a stream, within the schema of the destination. */
export const tableName = (
  connection: Pick<ConnectionRow, 'table_prefix'>,
  stream: Pick<StreamRow, 'destination_table' | 'name'>,
) => `${connection.table_prefix}${stream.destination_table ?? stream.name}`;
