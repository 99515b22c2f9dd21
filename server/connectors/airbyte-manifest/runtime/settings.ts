import { z } from 'zod';
import '../../contract/parameters.ts';
import type { PythonFiles } from '../components/python-source.ts';
import { checkConfig, type Config, merged, misplacedSecrets } from '../spec/specification.ts';
import type { ConnectorContext } from '../../contract/connector.ts';

/** Loaded with its first use, as in `source.ts`. */
const parsed = (text: string) =>
  (require('../components/parse-manifest.ts') as typeof import('../components/parse-manifest.ts')).parseManifest(text);

const values = z.record(z.string(), z.json());
const MAX_CHARACTERS = 4_000_000;
const MAX_PYTHON_CHARACTERS = 1_000_000;

const MAX_FILES_CHARACTERS = 8_000_000;
const FILE_PATH = /^[\w-]+(\.[\w-]+)*(\/[\w-]+(\.[\w-]+)*)*$/;
const PythonText = z
  .string()
  .max(MAX_PYTHON_CHARACTERS)
  .refine((text) => !text.includes('\0'), { error: 'The file contains a zero character' });

export const AirbyteManifestConfig = z
  .object({
    manifest: z
      .string()
      .min(1)
      .max(MAX_CHARACTERS)
      .superRefine((text, ctx) => {
        const { problem } = parsed(text);
        if (problem !== null) ctx.addIssue({ code: 'custom', message: problem });
      })
      .meta({
        label: 'Manifest',
        document: true,
        directs_secrets: true,
        description: 'The manifest.yaml of a low-code connector, unchanged',
        validates_remotely: true,
      }),
    components: PythonText.optional().meta({
      label: 'Components',
      document: true,
      directs_secrets: true,
      description: 'The components.py of the connector, which the manifest names as custom components',
      validates_remotely: true,
    }),
    files: z
      .record(z.string().regex(FILE_PATH, { error: 'Not a path of a file in the package' }), PythonText)
      .refine((files) => Object.values(files).reduce((sum, { length }) => sum + length, 0) <= MAX_FILES_CHARACTERS, {
        error: `The files have more than ${MAX_FILES_CHARACTERS.toLocaleString('en')} characters`,
      })
      .optional()
      .meta({
        label: 'Files',
        directs_secrets: true,
        description:
          'Python files and schemas of a connector with several files, by their path: { "source_x/components.py": "…" }',
        group: 'advanced',
        validates_remotely: true,
      }),
    config: values.default({}).meta({
      label: 'Configuration',
      directs_secrets: true,
      description: 'The values that the spec of the manifest requires, without the secrets',
    }),
    secrets: values.optional().meta({
      label: 'Secrets',
      description:
        'The values that the spec marks as airbyte_secret, at the same paths: { "credentials": { "client_secret": "…" } }',
      secret: true,
      group: 'authentication',
      validates_remotely: true,
    }),
    skip_unsupported_streams: z.boolean().default(false).meta({
      label: 'Skip unsupported streams',
      directs_secrets: false,
      description: 'Leave out streams that use unsupported features instead of rejecting the manifest',
      group: 'advanced',
    }),
    unfitting_values: z.enum(['fail', 'null']).default('fail').meta({
      label: 'Values that do not fit the schema',
      directs_secrets: false,
      description: 'fail: the run fails and names the field. null: the value becomes NULL, with a warning',
      group: 'advanced',
    }),
    missing_records: z.enum(['fail', 'empty']).default('fail').meta({
      label: 'Responses without records',
      directs_secrets: false,
      description:
        'fail: a read in which no response has the list of records fails. empty: such responses count as empty lists',
      group: 'advanced',
    }),
    max_pages: z
      .int()
      .min(1)
      .max(10_000_000)
      .default(1_000_000)
      .meta({ label: 'Maximum pages per request', directs_secrets: false, group: 'advanced' }),
    max_page_bytes: z
      .int()
      .min(1024)
      .max(256 * 1024 * 1024)
      .default(32 * 1024 * 1024)
      .meta({ label: 'Maximum response size (bytes)', directs_secrets: false, group: 'advanced' }),
  })
  .superRefine((settings, ctx) => {
    for (const message of configProblems(settings)) ctx.addIssue({ code: 'custom', path: ['config'], message });
  });
export type AirbyteManifestConfig = z.infer<typeof AirbyteManifestConfig>;

/** Values and secrets as the single configuration that the manifest expects. */
export const configOf = ({ config, secrets = {} }: Pick<AirbyteManifestConfig, 'config' | 'secrets'>): Config =>
  merged(config, secrets) as Config;

/** The files of the connector, by their path in its package. Null: it has none. */
export function filesOf({ components, files = {} }: Pick<AirbyteManifestConfig, 'components' | 'files'>) {
  const own = Object.entries(files).map(([path, text]) => [path.replace(/^source_\w+\//, ''), text]);
  const all: PythonFiles = { ...Object.fromEntries(own), ...(components && { 'components.py': components }) };
  return Object.keys(all).length > 0 ? all : null;
}

/** What is wrong with a configuration, by the spec of its manifest. */
export function configProblems(settings: Pick<AirbyteManifestConfig, 'manifest' | 'config' | 'secrets'>): string[] {
  const { manifest } = parsed(settings.manifest);
  if (manifest === null) return [];
  const misplaced = misplacedSecrets(manifest.specification, settings.config);
  return [
    ...misplaced.map((place) => `"${place}" is a secret. Move it to "secrets", at the same path.`),
    ...checkConfig(manifest.specification, configOf(settings)).problems,
  ];
}

export type Context = ConnectorContext<AirbyteManifestConfig>;
