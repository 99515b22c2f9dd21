import { z } from 'zod';
import { count, instant, text, whole } from '../../api/wire-types.ts';

/** Of a request with the files of a connector: text of 12 million characters, as JSON escapes it. */
export const MAX_DOCUMENTS_BODY_BYTES = 16 * 1024 * 1024;

const MAX_ICON_LENGTH = 64_000;
const httpsUrl = () => text(1, 2000).refine((given) => URL.parse(given)?.protocol === 'https:', 'Not an https address');

const icon = text(1, MAX_ICON_LENGTH)
  .regex(/^data:image\/(png|jpeg|webp|svg\+xml);base64,[A-Za-z0-9+/]+={0,2}$/, 'Not a data URL of an image')
  .nullable()
  .meta({ description: 'A data URL of a PNG, JPEG, WebP or SVG image, at most 64,000 characters.' });
const shown = {
  display_name: text(1, 100).trim().min(1).optional(),
  description: text(0, 500).optional(),
  icon: icon.optional(),
  documentation_url: httpsUrl().nullable().meta({ description: 'Default: that of the manifest.' }).optional(),
};

const documents = {
  manifest: text(1, 4_000_000).optional().meta({ description: 'A manifest in YAML or JSON.' }),
  components: text(1, 1_000_000).nullish().meta({ description: 'The components.py of the manifest.' }),
  files: z.record(z.string(), z.string()).nullish().meta({ description: 'Python files and schemas, by their path.' }),
  manifest_url: text(1, 2000)
    .optional()
    .meta({ description: 'Where the service fetches the manifest. Everyone in the account sees the address.' }),
  components_url: text(1, 2000).nullish().meta({ description: 'Where it fetches the components.py.' }),
};
const GivenDocuments = z.object(documents);
export type GivenDocuments = z.output<typeof GivenDocuments>;

export const CreateCustomConnectorRequest = z
  .strictObject({
    name: text(1, 50)
      .regex(/^[a-z][a-z0-9_]*$/, 'A name has lower-case letters, digits and underscores')
      .meta({ description: 'The catalog lists the connector as `custom.` and this name.' }),
    ...shown,
    ...documents,
  })
  .meta({
    id: 'CreateCustomConnectorRequest',
    examples: [{ name: 'shop', manifest_url: 'https://example.com/source-shop/manifest.yaml' }],
  });
export type CreateCustomConnectorRequest = z.output<typeof CreateCustomConnectorRequest>;

export const PreviewCustomConnectorRequest = z
  .strictObject(documents)
  .meta({ id: 'PreviewCustomConnectorRequest', examples: [{}] });
export type PreviewCustomConnectorRequest = z.output<typeof PreviewCustomConnectorRequest>;

export const UpdateCustomConnectorRequest = z
  .strictObject({
    digest: text(64, 64).optional().meta({ description: 'That of the preview. Needed to change the manifest.' }),
    accept_breaking: z.boolean().default(false).meta({ description: 'Update although sources would break.' }),
    revision: z.int().min(1).optional(),
    ...shown,
    ...documents,
  })
  .meta({
    id: 'UpdateCustomConnectorRequest',
    examples: [{ digest: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855' }],
  });
export type UpdateCustomConnectorRequest = z.output<typeof UpdateCustomConnectorRequest>;

const Unsupported = z.array(z.object({ place: z.string(), what: z.string() }));

export const CustomConnectorSchema = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    name: z.string().meta({ description: 'As `connector_name` of its sources.' }),
    display_name: z.string(),
    description: z.string(),
    icon: z.string().nullable(),
    documentation_url: z.string().nullable(),
    manifest_url: z.string().nullable().meta({ description: 'Null: the manifest was uploaded.' }),
    components_url: z.string().nullable(),
    version: whole().meta({ description: 'The number of the manifest, beginning with 1.' }),
    digest: z.string().meta({ description: 'SHA-256 of the manifest and its files.' }),
    streams: z.array(z.string()).meta({ description: 'Without those that only requests find.' }),
    unsupported: Unsupported.meta({ description: 'Parts of the manifest that the service does not support.' }),
    sources_count: count(),
    created_at: instant(),
    updated_at: instant(),
    revision: whole(),
  })
  .meta({ id: 'CustomConnector' });
export type CustomConnectorSchema = z.infer<typeof CustomConnectorSchema>;

export const ManifestChange = z
  .object({
    subject: z.enum(['stream', 'primary_key', 'cursor', 'field', 'parameter']),
    stream: z.string().nullable(),
    name: z.string().nullable().meta({ description: 'Of a field or a parameter.' }),
    before: z.string().nullable().meta({ description: 'Null: it is new.' }),
    after: z.string().nullable().meta({ description: 'Null: it is removed.' }),
    is_breaking: z.boolean().meta({ description: 'Connections that use it are affected.' }),
  })
  .meta({ id: 'ManifestChange' });
export type ManifestChange = z.infer<typeof ManifestChange>;

const AffectedSource = z
  .object({
    id: z.string(),
    name: z.string(),
    problems: z.array(z.string()).meta({ description: 'Why its settings do not fit the new manifest.' }),
    needs_secrets: z.boolean().meta({
      description: 'Requests go to other places. The stored secrets are deleted, and have to be entered again.',
    }),
    streams: z
      .array(z.object({ connection_id: z.string(), connection_name: z.string(), stream: z.string() }))
      .meta({ description: 'Selected streams with breaking changes.' }),
  })
  .meta({ id: 'AffectedSource' });
export type AffectedSource = z.infer<typeof AffectedSource>;

export const CustomConnectorPreview = z
  .object({
    digest: z.string(),
    is_changed: z.boolean(),
    changes: z.array(ManifestChange),
    unsupported: Unsupported,
    sources: z.array(AffectedSource).meta({ description: 'Sources that would break. They need `accept_breaking`.' }),
    sources_count: count().meta({ description: 'All sources of the connector. Each gets the new manifest.' }),
  })
  .meta({ id: 'CustomConnectorPreview' });
export type CustomConnectorPreview = z.infer<typeof CustomConnectorPreview>;
