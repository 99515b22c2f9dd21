import { z } from 'zod';
import { plainIssues } from './issues.ts';
import { Decoder, HttpRequester, pythonComponent, template } from './request-components.ts';

export const parameters = z.record(z.string(), z.unknown()).optional();
/** A component that changes the result when it is ignored, and so is rejected. */
export const refused = (what: string) => z.undefined({ error: `${what} is not supported` }).optional();
export const fieldPath = z.array(template);

const AddFields = z.object({
  type: z.literal('AddFields'),
  fields: z.array(
    z.object({
      path: z.array(template).min(1),
      value: z.union([template, z.number(), z.boolean()]),
      value_type: z.enum(['string', 'number', 'integer', 'boolean']).optional(),
    }),
  ),
  condition: template.default(''),
  $parameters: parameters,
});
const KeysReplace = { old: template, new: template };
export const SyncTransformation = z.discriminatedUnion('type', [
  AddFields,
  z.object({
    type: z.literal('RemoveFields'),
    field_pointers: z.array(fieldPath),
    condition: template.default(''),
    $parameters: parameters,
  }),
  z.object({ type: z.literal('KeysToLower') }),
  z.object({ type: z.literal('KeysToSnakeCase') }),
  z.object({ type: z.literal('KeysReplace'), ...KeysReplace, $parameters: parameters }),
  z.object({ type: z.literal('FlattenFields'), flatten_lists: z.boolean().default(true) }),
  z.object({
    type: z.literal('DpathFlattenFields'),
    field_path: fieldPath,
    delete_origin_value: z.boolean().default(false),
    replace_record: z.boolean().default(false),
    key_transformation: z.object({ prefix: template.nullish(), suffix: template.nullish() }).nullish(),
    $parameters: parameters,
  }),
]);
export type SyncTransformation = z.infer<typeof SyncTransformation>;
const PythonTransformation = z.object({
  type: z.literal('PythonTransformation'),
  component: z.record(z.string(), z.unknown()).superRefine((component, ctx) => {
    for (const issue of requesterIssues(component)) ctx.addIssue({ code: 'custom', ...issue });
  }),
});

/** What is wrong with the requesters in a component, by which the service sends. */
function requesterIssues(node: unknown, path: PropertyKey[] = []): { path: PropertyKey[]; message: string }[] {
  if (typeof node !== 'object' || node === null) return [];
  if ('type' in node && node.type === 'HttpRequester')
    return (HttpRequester.safeParse(node).error?.issues ?? []).flatMap((issue) => plainIssues(issue, path));
  return Object.entries(node).flatMap(([name, value]) => requesterIssues(value, [...path, name]));
}

export const Transformation = z.discriminatedUnion('type', [SyncTransformation, PythonTransformation]);
export type Transformation = z.infer<typeof Transformation>;

export const RecordFilter = z.object({
  type: z.literal('RecordFilter'),
  condition: template.default(''),
  $parameters: parameters,
});
export const DpathExtractor = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('DpathExtractor'),
    field_path: fieldPath,
    decoder: Decoder.nullish(),
    record_expander: refused('record_expander'),
    $parameters: parameters,
  }),
]);
export const Extractor = z.discriminatedUnion('type', [DpathExtractor, pythonComponent('PythonExtractor')]);
export const RecordSelector = z.object({
  type: z.literal('RecordSelector'),
  extractor: Extractor,
  record_filter: z.discriminatedUnion('type', [RecordFilter, pythonComponent('PythonFilter')]).nullish(),
  transform_before_filtering: z.boolean().optional(),
  schema_normalization: z
    .union([pythonComponent('PythonNormalization'), z.enum(['None', 'Default']), z.null()])
    .optional(),
});
export type RecordSelector = z.infer<typeof RecordSelector>;
