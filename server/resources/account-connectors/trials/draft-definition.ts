import { z } from 'zod';
import { runConnectorJob } from '../../../connector-runtime/run-connector-job.ts';
import { ConfigurationError } from '../../../connectors/contract/errors.ts';
import { badRequest } from '../../../platform/errors.ts';
import { asUpstreamError } from '../../../api/upstream-error.ts';
import type { Ctx } from '../../../api/procedure.ts';
import { text } from '../../../api/wire-types.ts';

/** Descriptions of large APIs have several million characters. `client/openapi-document.ts` has the number, too. */
const MAX_OPENAPI_LENGTH = 8_000_000;
/** With as many quotes and line ends as JSON escapes in the text of a JSON document. */
export const MAX_DRAFT_BODY_BYTES = 16 * 1024 * 1024;
const LIMITS = { ms: 30_000, cpu_ms: 20_000 };

export const DefinitionDraftRequest = z
  .strictObject({
    connector_name: text(1, 100).default('http_api'),
    openapi: text(1, MAX_OPENAPI_LENGTH).meta({ description: 'An OpenAPI 3 or Swagger 2 document, in YAML or JSON.' }),
  })
  .meta({ id: 'DefinitionDraftRequest', examples: [{ openapi: 'openapi: 3.1.0 …' }] });
type DefinitionDraftRequest = z.output<typeof DefinitionDraftRequest>;

export const DefinitionDraft = z
  .object({
    definition: z.string().meta({ description: 'YAML. Comments name what was guessed.' }),
    assumptions: z.array(z.string()).meta({ description: 'What was guessed for all streams, to be confirmed.' }),
    streams: z.array(
      z.object({
        name: z.string(),
        path: z.string(),
        assumptions: z.array(z.string()).meta({ description: 'What was guessed, to be confirmed.' }),
      }),
    ),
    left_out: z
      .array(z.object({ path: z.string(), reason: z.string() }))
      .meta({ description: 'GET operations that have no stream.' }),
    config: z.array(z.string()).meta({ description: 'Names of the values that the definition uses.' }),
    secrets: z.array(z.string()).meta({ description: 'Names of the secret values that the definition uses.' }),
  })
  .meta({ id: 'DefinitionDraft' });
type DefinitionDraft = z.infer<typeof DefinitionDraft>;

/**
 * A definition drafted from an OpenAPI document, for a user to confirm. Runs in a limited process, since users write the
 * document; stores nothing and sends no requests.
 * @throws ApiError 400 `invalid_openapi`, `no_lists`, `draft_unsupported`, `cpu_limit_exceeded`
 */
export async function draftDefinition(ctx: Ctx, input: DefinitionDraftRequest): Promise<DefinitionDraft> {
  const { connector_name, openapi } = input;
  const job = { operation: 'draft' as const, name: connector_name, openapi };
  try {
    const [item] = await runConnectorJob(job, { ...LIMITS, owner: ctx.principal.account_id });
    if (!item?.drafted) throw new Error('the draft of a definition returned nothing');
    return item.drafted;
  } catch (error) {
    if (error instanceof ConfigurationError) throw badRequest(error.code, error.message, { field: 'openapi' });
    throw asUpstreamError(error);
  }
}
