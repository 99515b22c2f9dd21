import { z } from 'zod';
import '../contract/parameters.ts';
import { parseManifest } from './components/manifest.ts';
import { checkConfig, type Config, merged, misplacedSecrets } from './specification.ts';

const values = z.record(z.string(), z.json());
const MOST_CHARACTERS = 4_000_000;

export const AirbyteManifestConfig = z
  .object({
    manifest: z
      .string()
      .min(1)
      .max(MOST_CHARACTERS)
      .superRefine((text, ctx) => {
        const { problem } = parseManifest(text);
        if (problem !== null) ctx.addIssue({ code: 'custom', message: problem });
      })
      .meta({
        label: 'Manifest',
        description: 'The manifest.yaml of a low-code connector, as it is',
        validates_remotely: true,
      }),
    config: values.default({}).meta({
      label: 'Configuration',
      description: 'What the spec of the manifest asks for, without the secrets',
    }),
    secrets: values.optional().meta({
      label: 'Secrets of the configuration',
      description:
        'The values that the spec calls secret, in their places: { "credentials": { "client_secret": "…" } }',
      secret: true,
      group: 'authentication',
      validates_remotely: true,
    }),
    skip_unsupported_streams: z.boolean().default(false).meta({
      label: 'Leave out streams that cannot run here',
      description: 'Streams that need what is not supported are left out instead of refusing the manifest',
      group: 'advanced',
    }),
    unfitting_values: z.enum(['fail', 'null']).default('fail').meta({
      label: 'Values of another type than the schema says',
      description: 'fail: the run ends and names the field. null: the value becomes NULL, with a warning',
      group: 'advanced',
    }),
    max_pages: z.int().min(1).max(10_000_000).default(1_000_000).meta({
      label: 'Most pages of one request',
      group: 'advanced',
    }),
    max_page_bytes: z
      .int()
      .min(1024)
      .max(256 * 1024 * 1024)
      .default(32 * 1024 * 1024)
      .meta({ label: 'Largest answer in bytes', group: 'advanced' }),
  })
  .superRefine((settings, ctx) => {
    for (const message of configProblems(settings)) ctx.addIssue({ code: 'custom', path: ['config'], message });
  });
export type AirbyteManifestConfig = z.infer<typeof AirbyteManifestConfig>;

/** Values and secrets as the one configuration that the manifest knows. */
export const configOf = ({ config, secrets = {} }: Pick<AirbyteManifestConfig, 'config' | 'secrets'>): Config =>
  merged(config, secrets) as Config;

/** What is wrong with a configuration, by the spec of its manifest. */
export function configProblems(settings: Pick<AirbyteManifestConfig, 'manifest' | 'config' | 'secrets'>): string[] {
  const { manifest } = parseManifest(settings.manifest);
  if (manifest === null) return [];
  const misplaced = misplacedSecrets(manifest.specification, settings.config);
  return [
    ...misplaced.map((place) => `"${place}" is a secret: it belongs into "secrets", in the same place`),
    ...checkConfig(manifest.specification, configOf(settings)).problems,
  ];
}
