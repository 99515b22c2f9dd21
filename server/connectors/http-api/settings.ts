import { z } from 'zod';
import '../contract/parameters.ts';
import { missingValues, parseDefinition } from './parse-definition.ts';

/** Enough to recognize an Airbyte manifest in YAML or JSON without reading the whole document. */
const isManifest = (text: string): boolean =>
  /^type:\s*["']?DeclarativeSource\b/m.test(text) || /"type"\s*:\s*"DeclarativeSource"/.test(text);

export const HttpApiConfig = z
  .object({
    definition: z
      .string()
      .min(1)
      .max(4_000_000)
      .superRefine((text, ctx) => {
        if (isManifest(text)) {
          const message = 'The definition is an Airbyte manifest. Use the connector airbyte_manifest for it.';
          ctx.addIssue({ code: 'custom', params: { code: 'use_airbyte_manifest' }, message });
          return;
        }
        const { problem } = parseDefinition(text);
        if (problem !== null) ctx.addIssue({ code: 'custom', message: problem });
      })
      .meta({
        label: 'API definition',
        document: true,
        directs_secrets: true,
        description: 'YAML or JSON with the base URL, authentication and streams',
        validates_remotely: true,
      }),
    config: z
      .record(z.string(), z.json())
      .default({})
      .meta({ label: 'Values', directs_secrets: true, description: 'Used in the definition as {{ config.name }}' }),
    secrets: z.record(z.string(), z.json()).optional().meta({
      label: 'Secret values',
      description: 'Used in the definition as {{ secrets.name }}',
      secret: true,
      group: 'authentication',
      validates_remotely: true,
    }),
  })
  .superRefine((settings, ctx) => {
    const { definition } = parseDefinition(settings.definition);
    if (!definition) return;
    const given = { config: settings.config, secrets: settings.secrets ?? {} };
    for (const { root, name } of missingValues(definition, given)) {
      ctx.addIssue({
        code: 'custom',
        path: [root],
        message: `The definition uses {{ ${root}.${name} }}. Add a value for it.`,
      });
    }
  });
export type HttpApiConfig = z.infer<typeof HttpApiConfig>;
