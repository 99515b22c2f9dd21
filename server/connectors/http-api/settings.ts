import { z } from 'zod';
import '../contract/parameters.ts';
import { isManifest, parseManifest } from '../airbyte-manifest/components/manifest.ts';
import { AirbyteManifestConfig, configProblems } from '../airbyte-manifest/settings.ts';
import { missingValues, parseDefinition } from './parse-definition.ts';

export const HttpApiConfig = z
  .object({
    definition: z
      .string()
      .min(1)
      .max(4_000_000)
      .superRefine((text, ctx) => {
        const { problem } = isManifest(text) ? parseManifest(text) : parseDefinition(text);
        if (problem !== null) ctx.addIssue({ code: 'custom', message: problem });
      })
      .meta({
        label: 'Definition of the API',
        description:
          'YAML or JSON: base address, authentication, streams; or a manifest of Airbyte. See the documentation of the connector',
        validates_remotely: true,
      }),
    config: z
      .record(z.string(), z.json())
      .default({})
      .meta({ label: 'Values', description: 'What the definition calls {{ config.name }}' }),
    secrets: z.record(z.string(), z.json()).optional().meta({
      label: 'Secret values',
      description: 'What the definition calls {{ secrets.name }}',
      secret: true,
      group: 'authentication',
      validates_remotely: true,
    }),
  })
  .superRefine((settings, ctx) => {
    if (isManifest(settings.definition)) {
      const { definition: manifest, config, secrets } = settings;
      for (const message of configProblems({ manifest, config, secrets }))
        ctx.addIssue({ code: 'custom', path: ['config'], message });
      return;
    }
    const { definition } = parseDefinition(settings.definition);
    if (!definition) return;
    const given = { config: settings.config, secrets: settings.secrets ?? {} };
    for (const { root, name } of missingValues(definition, given)) {
      ctx.addIssue({ code: 'custom', path: [root], message: `The definition needs a value named "${name}"` });
    }
  });
export type HttpApiConfig = z.infer<typeof HttpApiConfig>;

/** The settings as those of a manifest; null when the definition is none. */
export const asManifest = ({ definition, config, secrets }: HttpApiConfig): AirbyteManifestConfig | null =>
  isManifest(definition) ? AirbyteManifestConfig.parse({ manifest: definition, config, secrets }) : null;
