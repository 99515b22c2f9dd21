import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import type { ConsentAnswer, ConsentRequest } from '../../connectors/contract/connector.ts';
import { ConnectorError } from '../../connectors/contract/errors.ts';
import type { Deps } from '../../deps.ts';
import { presentable } from '../account-connector-calls.ts';
import { callConnector } from '../call-connector.ts';
import type { SecretUse } from '../secret-uses.ts';

const TIME = { ms: 20_000, cpu_ms: 10_000 };

/** The provider's page. @throws ConnectorError with the row's secrets redacted */
export async function consentPage(
  deps: Deps,
  row: AccountConnectorRow,
  { request, actor }: { request: ConsentRequest; actor: SecretUse['actor'] },
): Promise<string> {
  const [item] = await call(deps, row, { operation: 'consent_page', request }, actor);
  if (item?.consent_page === undefined) throw new ConnectorError('unexpected_error', 'The connector returned no page');
  return item.consent_page;
}

/** The parameters with the tokens that a code stands for. @throws as above */
export async function consentTokens(
  deps: Deps,
  row: AccountConnectorRow,
  { answer, actor }: { answer: ConsentAnswer; actor: SecretUse['actor'] },
): Promise<Record<string, unknown>> {
  const [item] = await call(deps, row, { operation: 'consent_tokens', answer }, actor);
  return item?.consent_tokens ?? {};
}

async function call(
  deps: Deps,
  row: AccountConnectorRow,
  what: Parameters<typeof callConnector>[2],
  actor: SecretUse['actor'],
) {
  try {
    return await callConnector(deps, row, what, { ...TIME, use: { purpose: 'consent', actor } });
  } catch (error) {
    throw presentable(deps, row, error);
  }
}
