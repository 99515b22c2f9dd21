import { z } from 'zod';
import '../parameters.ts';
import { missingValues, parseDefinition } from './parse-definition.ts';

export const HttpApiConfig = z
  .object({
    definition: z
      .string()
      .min(1)
      .max(500_000)
      .superRefine((text, ctx) => {
        const { problem } = parseDefinition(text);
        if (problem !== null) ctx.addIssue({ code: 'custom', message: problem });
      })
      .meta({
        label: 'Definition of the API',
        description: 'YAML or JSON: base address, authentication, streams; see the documentation of the connector',
        validates_remotely: true,
      }),
    config: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
      .default({})
      .meta({ label: 'Values', description: 'What the definition calls {{ config.name }}' }),
    secrets: z.record(z.string(), z.string()).optional().meta({
      label: 'Secret values',
      description: 'What the definition calls {{ secrets.name }}',
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
      ctx.addIssue({ code: 'custom', path: [root], message: `The definition needs a value named "${name}"` });
    }
  });
export type HttpApiConfig = z.infer<typeof HttpApiConfig>;
