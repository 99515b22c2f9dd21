import { z } from 'zod';
import type { AccountConnectorRow } from '../../../../db/schema/index.ts';
import { tryPage as tryFirstPage } from '../../../connector-runtime/account-connector-calls.ts';
import { openParameters } from '../../../connector-runtime/connector-secrets.ts';
import { LOGICAL_TYPES } from '../../../connectors/contract/connector.ts';
import { findConnector } from '../../../connectors/registry.ts';
import { badRequest } from '../../../platform/errors.ts';
import { actorOf, type Ctx, requirePermission } from '../../../api/procedure.ts';
import { count, idInBody, text } from '../../../api/wire-types.ts';
import { draftOf } from '../create.ts';
import { checkParameters, sealParameters } from '../parameters.ts';
import { findAccountConnector } from '../query.ts';
import { redirectedSecrets } from '../secrets/redirected-secrets.ts';

export const PageTrialRequest = z
  .strictObject({
    account_connector_id: idInBody()
      .nullish()
      .meta({ description: 'A stored source, whose settings `parameters` overrides.' }),
    connector_name: text(1, 100).default('http_api'),
    parameters: z.record(z.string(), z.unknown()).default({}),
    stream_name: text(1, 255).nullish().meta({ description: 'Null or absent: the first stream.' }),
  })
  .meta({
    id: 'PageTrialRequest',
    examples: [{ connector_name: 'http_api', parameters: { definition: 'base_url: …' }, stream_name: 'orders' }],
  });
type PageTrialRequest = z.output<typeof PageTrialRequest>;

const texts = z.record(z.string(), z.string());
const TrialRequest = z
  .object({
    method: z.string(),
    url: z.string(),
    query: texts,
    headers: texts,
    body: z.string().nullable(),
  })
  .meta({ id: 'TrialRequest' });

export const PageTrial = z
  .object({
    exchanges: z.array(
      z.object({
        request: TrialRequest,
        response: z
          .object({ status: z.int().nullable(), headers: texts, body: z.string().nullable() })
          .nullable()
          .meta({ description: 'The first 64 KiB of the body. Null: there was no response.' }),
      }),
    ),
    records_found: count(),
    records: z.array(z.string()).meta({ description: 'The first 20 records, as JSON.' }),
    fields: z.array(z.object({ name: z.string(), type: z.enum(LOGICAL_TYPES), is_primary_key: z.boolean() })),
    next_request: TrialRequest.nullable().meta({ description: 'Before it is signed. Null: the last page.' }),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
  })
  .meta({ id: 'PageTrial' });
type PageTrial = z.infer<typeof PageTrial>;

/**
 * The first page of a stream while its definition is written: requests with secrets hidden, responses, records, fields
 * and the request of the next page. Runs in a limited process and stores nothing but the use of stored secrets.
 * @throws ApiError 400 for settings that a create or an update refuses, `secrets_required`, `trial_unsupported`.
 */
export async function tryPage(ctx: Ctx, input: PageTrialRequest): Promise<PageTrial> {
  const row = await candidateOf(ctx, input);
  const connector = findConnector('source', row.connector_name);
  if (!connector || connector.type !== 'source' || !connector.tryPage) {
    throw badRequest('trial_unsupported', `${row.connector_name} reads no single pages`, { field: 'connector_name' });
  }
  const request = { stream_name: input.stream_name ?? null, actor: actorOf(ctx.principal) };
  const { exchanges, page, error } = await tryFirstPage(ctx.deps, row, request);
  const shown = (one: (typeof exchanges)[number]['request']) => ({
    method: one.method,
    url: one.url,
    query: one.query ?? {},
    headers: one.headers ?? {},
    body: one.body ?? null,
  });
  return {
    exchanges: exchanges.map(({ request: sent, response }) => ({
      request: shown(sent),
      response: response && { status: response.status, headers: response.headers ?? {}, body: response.body ?? null },
    })),
    records_found: page?.found ?? 0,
    records: page?.records ?? [],
    fields: (page?.fields ?? []).map(({ path, type, is_primary_key }) => ({
      name: path.join('.'),
      type,
      is_primary_key,
    })),
    next_request: page?.next ? shown(page.next) : null,
    error: error && { code: error.code, message: error.message },
  };
}

/** A row that is not stored: new settings, or those of a stored source with changes. */
async function candidateOf(ctx: Ctx, input: PageTrialRequest): Promise<AccountConnectorRow> {
  const { account_connector_id: id, connector_name, parameters } = input;
  if (id == null) {
    requirePermission(ctx, 'sources.create');
    const settings = { name: 'Trial', connector_type: 'source' as const, connector_name, parameters };
    return draftOf(ctx, { ...settings, test_connection: false });
  }
  const row = await findAccountConnector(ctx, id, false);
  requirePermission(ctx, 'sources.update');
  const connector = row.connector_type === 'source' ? findConnector('source', row.connector_name) : undefined;
  if (!connector)
    throw badRequest('trial_unsupported', `${row.name} is not a source`, { field: 'account_connector_id' });
  const stored = openParameters(ctx.deps, row);
  const { all } = await checkParameters(ctx, connector, parameters, stored);
  const redirected = redirectedSecrets(connector, { before: stored, after: all, given: parameters });
  if (redirected) throw badRequest('secrets_required', redirected.message, { field: 'parameters' });
  return { ...row, ...sealParameters(ctx.deps, connector, { row, all }) };
}
