import { recordRefusal } from '../../api/audit/refusals.ts';
import { WEBHOOK_TEMPLATE } from '../../connector-runtime/inbox/address.ts';
import { type NoteSource, WebhookReceiver } from '../../connector-runtime/inbox/receive.ts';
import type { Deps } from '../../deps.ts';
import { ApiError } from '../../platform/errors.ts';
import { readBytes } from '../body.ts';
import { unauthenticatedCall } from '../errors.ts';
import type { PathRoutes } from '../rest.ts';
import type { HttpExchange } from '../exchange.ts';

/** POST: stores an event for the source of the address. 2xx after its commit, so that senders repeat everything else. */
export function webhookRoutes(deps: Deps): PathRoutes {
  const receiver = new WebhookReceiver(deps);
  const handler = async (exchange: HttpExchange): Promise<Response> => {
    const { request, params } = exchange;
    let source: Parameters<NoteSource>[0] | null = null;
    try {
      const [account_connector_id = '', token = ''] = params;
      refuseEncoded(request);
      const status = await receiver.receive(
        { account_connector_id, token, headers: request.headers, readBody: (limit) => readBytes(request, limit) },
        (found) => (source = found),
      );
      return Response.json({ status });
    } catch (error) {
      await recordRefusal(deps, error, () => refusedCall(exchange, source));
      throw error;
    }
  };
  return { pattern: '/webhooks/:p1/:p2', template: WEBHOOK_TEMPLATE, handlers: new Map([['POST', handler]]) };
}

/** A small body could become a large one. */
function refuseEncoded({ headers }: Request): void {
  const encoding = headers.get('content-encoding');
  if (encoding === null || encoding === 'identity') return;
  throw new ApiError(415, 'unsupported_media_type', 'Send the body without Content-Encoding');
}

/** In the audit log of the account that the source belongs to. The route has no token. */
function refusedCall(exchange: HttpExchange, source: Parameters<NoteSource>[0] | null) {
  const call = unauthenticatedCall(exchange, WEBHOOK_TEMPLATE);
  if (!source) return call;
  const { account_id, account_connector_id: resource_id, name: resource_name } = source;
  return { ...call, about: { account_id, resource_type: 'account_connector', resource_id, resource_name } };
}
