import { createTRPCClient, httpBatchLink, httpLink, httpSubscriptionLink, splitLink } from '@trpc/client';
import { EventSource } from 'eventsource';
import type { AppRouter } from '../server/router.ts';
import { typedErrors } from './api-error.ts';
import { type Fetch, retryingFetch } from './retry.ts';

type Sending = NonNullable<Parameters<typeof httpLink<AppRouter>>[0]['fetch']>;

export { ApiError, isApiError, type Problem } from './api-error.ts';

export interface ClientOptions {
  /** Called for every request; returns headers such as the CSRF token of a session. */
  headers?: () => Record<string, string>;
  /** Replaces the platform's `fetch`. */
  fetch?: Fetch;
}

/**
 * A typed client of every procedure, for Bun, Node 20 and browsers. `url`: address of the service, with the path below
 * which a proxy serves it; `key`: an API key, omitted where a session cookie authenticates (same origin).
 *
 * Concurrent reads are batched into one request. Each change is sent alone with its own Idempotency-Key, so a retry
 * never applies it twice (see retry.ts). Subscriptions use server-sent events and reconnect automatically. Every call
 * takes `{ signal }` as its second argument.
 * @throws ApiError with `code`, `status`, `detail` and `request_id`; narrow errors with `isApiError`.
 *
 * Connectors and their parameters:
 * ```ts
 * const connectors = await api.connectors.list.query();
 * const sources = connectors.filter(({ connector_type }) => connector_type === 'source');
 * console.log(sources.map(({ name, parameters }) => [name, parameters.map(({ label }) => label)]));
 * ```
 * Sources and destinations, tested when they are created:
 * ```ts
 * const source = await api.account_connectors.create.mutate({
 *   name: 'Shop',
 *   connector_type: 'source',
 *   connector_name: 'postgres',
 *   parameters: { host: 'db.example.com', database: 'shop', username: 'reader', password: '…' },
 * });
 * console.log(source.status, source.last_test?.checks);
 * ```
 * Connections:
 * ```ts
 * const [source, destination] = await api.account_connectors.list.query();
 * const connection = await api.connections.create.mutate({
 *   name: 'Shop to warehouse',
 *   source_id: source!.id,
 *   destination_id: destination!.id,
 *   schedule: { type: 'cron', cron_expression: '0 6 * * *', timezone: 'Europe/Berlin' },
 * });
 * await api.connections.update.mutate({ connection_id: connection.id, status: 'paused' });
 * ```
 * Start a run and follow it until it ends:
 * ```ts
 * const connection_id = '…';
 * const connection_run_id = await api.runs.run.mutate({ connection_id });
 * if (connection_run_id) {
 *   api.runs.progress.subscribe(
 *     { connection_id, connection_run_id },
 *     {
 *       onData: ({ run, stream_runs }) => console.log(run.status, stream_runs.map(({ rows_loaded }) => rows_loaded)),
 *       onComplete: () => console.log('ended'),
 *       onError: (error) => console.error(error.message),
 *     },
 *   );
 * }
 * ```
 * Activity of the account:
 * ```ts
 * const [days, runs] = await Promise.all([api.overview.activity.query({}), api.overview.recentRuns.query({})]);
 * console.log(days.length, runs.map(({ status }) => status));
 * ```
 * Preview and launch a custom run:
 * ```ts
 * const plan = await api.runs.preview.mutate({
 *   connection_id: '…',
 *   parameters: { start_date: '2026-01-01', end_date: '2026-03-31', split: { unit: 'month', size: 1 } },
 * });
 * if (plan.decision !== 'blocked') {
 *   await api.runs.launchPlan.mutate({ connection_id: '…', plan_id: plan.plan_id, plan_hash: plan.plan_hash });
 * }
 * ```
 * Test a trigger's rule against past events:
 * ```ts
 * const rule = 'event == "connection_failed" && retry_count >= 3';
 * const result = await api.automation.evaluateRule.mutate({ rule, limit: 100 });
 * if (!result.is_valid) console.log(result.error?.message, result.error?.position);
 * ```
 * Start from a template of a common pipeline, or add a connector from a manifest:
 * ```ts
 * const templates = await api.templates.list.query();
 * console.log(templates.map(({ name, needs }) => [name, needs]));
 * const manifest_url = 'https://example.com/source-shop/manifest.yaml';
 * const connector = await api.custom_connectors.create.mutate({ name: 'shop', manifest_url });
 * console.log(connector.name, connector.version);
 * ```
 * Prove that source and destination are equal:
 * ```ts
 * const verification_id = await api.verifications.start.mutate({ connection_id: '…', request: {} });
 * const { status, streams } = await api.verifications.get.query({ verification_id });
 * console.log(status, streams.length);
 * ```
 * Move an application to the destination, once the source is not written to any more:
 * ```ts
 * const { position } = await api.cut_over.mark.mutate({ connection_id: '…' });
 * const { is_applied } = await api.cut_over.progress.query({ connection_id: '…', position });
 * if (is_applied) await api.cut_over.advanceSequences.mutate({ connection_id: '…', request: null });
 * ```
 * Save the filters of a list for all users of the account:
 * ```ts
 * const view = await api.saved_views.create.mutate({
 *   page: 'connections',
 *   name: 'Failing sales',
 *   query: 'state=failing&tag=sales',
 *   is_shared: true,
 * });
 * console.log(view.id, (await api.saved_views.list.query({ page: 'connections' })).length);
 * ```
 * Users, roles and errors:
 * ```ts
 * const roles = await api.roles.list.query();
 * const creator = roles.find(({ name }) => name === 'Creator');
 * try {
 *   await api.users.create.mutate({ email: 'ada@example.com', full_name: 'Ada', role_ids: [creator!.id] });
 * } catch (error) {
 *   if (!isApiError(error)) throw error;
 *   console.error(error.code, error.status, error.detail, error.request_id);
 * }
 * ```
 * Usage and plan limits:
 * ```ts
 * const usage = await api.billing.aggregatedUsage.query({ date_range: 'last_30_days' });
 * console.log(usage.totals.rows_total, usage.limits);
 * ```
 * The changes that one user caused:
 * ```ts
 * const entries = await api.audit.list.query({ actor: '…', action: 'connections.*' });
 * for (const { occurred_at, action, before, after } of entries) console.log(occurred_at, action, before, after);
 * ```
 */
export function createApiClient(url: string, key?: string, options: ClientOptions = {}) {
  const headers = () => ({ ...(key !== undefined && { authorization: `Bearer ${key}` }), ...options.headers?.() });
  const fetch: Fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  // Bun's type of a body reader has one overload more than tRPC's.
  const http = { url: new URL('trpc', url.endsWith('/') ? url : `${url}/`), fetch: retryingFetch(fetch) as Sending };
  return createTRPCClient<AppRouter>({
    links: [
      typedErrors,
      splitLink({
        condition: ({ type }) => type === 'subscription',
        true: httpSubscriptionLink({
          url: http.url.href,
          // The platform's EventSource cannot send an Authorization header.
          EventSource,
          eventSourceOptions: () => ({
            fetch: (input: string | URL, init: RequestInit) =>
              fetch(input, { ...init, headers: { accept: 'text/event-stream', ...headers() } }),
          }),
        }),
        false: splitLink({
          condition: ({ type }) => type === 'mutation',
          true: httpLink({ ...http, headers: () => ({ ...headers(), 'idempotency-key': crypto.randomUUID() }) }),
          false: httpBatchLink({ ...http, headers, maxItems: 100, maxURLLength: 8000 }),
        }),
      }),
    ],
  });
}
export type ApiClient = ReturnType<typeof createApiClient>;
