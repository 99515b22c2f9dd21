import { describe, expect, test } from 'bun:test';
import { eq, isNull } from 'drizzle-orm';
import { roles } from '../../db/schema/index.ts';
import { proceduresOf } from '../../server/http/rest.ts';
import { PERMISSIONS, type Permission } from '../../server/api/permissions.ts';
import { appRouter, restRouter } from '../../server/router.ts';
import { type Call, testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

const t = await testDeps();
const api = testApi(t);
const make = makerOf(api.call);
const UNKNOWN = '01890000-0000-7000-8000-000000000000';

/** Any one of these permissions is enough; an empty list means any user of the account. */
type Needed = readonly Permission[];

/** Every API operation. BY_KIND has those whose permission depends on the object. */
const NEEDED: Record<string, Needed> = {
  'GET /connections': [],
  'POST /connections': ['connections.create'],
  'GET /connections/custom-run/split-options': [],
  'GET /connections/{connection_id}/field_mapping_sources': [],
  'GET /connections/{connection_id}': [],
  'POST /connections/{connection_id}': ['connections.update'],
  'DELETE /connections/{connection_id}': ['connections.delete'],
  'GET /connections/{connection_id}/runs': [],
  'GET /connections/{connection_id}/runs/{connection_run_id}/stream_runs': [],
  'POST /connections/{connection_id}/run': ['connections.run'],
  'POST /connections/{connection_id}/run/launch-plan': ['connections.run'],
  'POST /connections/{connection_id}/run/preview': ['connections.run'],
  'POST /connections/{connection_run_id}/stop': ['connections.run'],
  'POST /connections/{connection_run_id}/rerun': ['connections.run'],
  'POST /connections/{connection_id}/update_catalog': ['connections.update'],
  'GET /connectors': [],
  'GET /connectors/{connector_type}/{connector_name}': [],
  'POST /account_connectors/generate_ssh_key': [
    'sources.create',
    'destinations.create',
    'sources.update',
    'destinations.update',
  ],
  'GET /account_connectors': [],
  'GET /account_connectors/{connector_type}/{account_connector_id}': [],
  'POST /account_connectors/{account_connector_id}/source_tasks/export_metadata': ['metadata.export'],
  'POST /stream_previews': ['data.preview'],
  'POST /page_trials': ['sources.create', 'sources.update'],
  'POST /definition_drafts': ['sources.create', 'sources.update'],
  'GET /oauth_consents/{oauth_consent_id}': [],
  'POST /oauth_consents': ['sources.create', 'destinations.create', 'sources.update', 'destinations.update'],
  'POST /account_connectors/{account_connector_id}/dataset_trials': ['data.preview'],
  'POST /account_connectors/{account_connector_id}/schema_tests': ['destinations.update'],
  'POST /connections/{connection_id}/runs/{connection_run_id}/stream_runs/{stream_run_id}/table_previews': [
    'data.preview_destination',
  ],
  'POST /account_connectors/{account_connector_id}/webhook/rotate': ['sources.update'],
  'POST /connections/{connection_id}/change_previews': ['data.preview'],
  'GET /connections/{connection_id}/runs/{connection_run_id}/stream_runs/{stream_run_id}/rejected_rows': [],
  'GET /connections/{connection_id}/runs/{connection_run_id}/log': [],
  'GET /connections/{connection_id}/runs/{connection_run_id}/trends': [],
  'POST /automation/notifications': ['triggers.update'],
  'POST /automation/notification_tests': ['triggers.update'],
  'GET /automation/notification_settings': [],
  'POST /automation/notification_settings': ['triggers.update'],
  'POST /automation/drift_reports': ['triggers.update'],
  'GET /automation/applied_files': [],
  'POST /automation/applied_files': ['triggers.update'],
  'POST /automation/applied_files/{applied_file_id}/compare': ['triggers.update'],
  'DELETE /automation/applied_files/{applied_file_id}': ['triggers.update'],
  'GET /account_connectors/{account_connector_id}/dynamic_possible_values/{parameter_name}': [],
  'GET /users': [],
  'POST /users': ['users.manage'],
  'GET /users/me': [],
  'GET /users/{user_id}': [],
  'POST /users/{user_id}': ['users.manage'],
  'DELETE /users/{user_id}': ['users.manage'],
  'POST /users/me/avatar': [],
  'PUT /users/me/onboarding-state': [],
  'GET /roles': [],
  'POST /roles': ['roles.manage'],
  'GET /roles/{role_id}': [],
  'POST /roles/{role_id}': ['roles.manage'],
  'DELETE /roles/{role_id}': ['roles.manage'],
  'POST /roles/{role_id}/users/{user_id}': ['roles.manage'],
  'DELETE /roles/{role_id}/users/{user_id}': ['roles.manage'],
  'POST /automation/evaluate_automator_rule': [],
  'GET /automation/events': [],
  'GET /automation/triggers': [],
  'POST /automation/triggers': ['triggers.create'],
  'GET /automation/triggers/{trigger_id}': [],
  'POST /automation/triggers/{trigger_id}': ['triggers.update'],
  'DELETE /automation/triggers/{trigger_id}': ['triggers.delete'],
  'GET /automation/cases': [],
  'GET /automation/cases/{case_id}': [],
  'POST /automation/cases/{case_id}': ['cases.update'],
  'GET /automation/chat_channels/{account_connector_id}': [],
  'GET /billing/plans': ['billing.read'],
  'GET /billing/usage/aggregated': ['billing.read'],
  'GET /billing/usage/connection-usage': ['billing.read'],
  'GET /overview/activity': [],
  'GET /overview/recent_runs': [],
  'POST /users/{user_id}/invitation': ['users.manage'],
  'GET /users/me/api_keys': [],
  'POST /users/me/api_keys': [],
  'DELETE /users/me/api_keys/{api_key_id}': ['users.manage'],
  'GET /users/me/sessions': [],
  'DELETE /users/me/sessions/{session_id}': ['users.manage'],
  'GET /automation/rule_language': [],
  'GET /connection_summaries': [],
  'GET /pipeline_templates': [],
  'POST /connection_checks': ['connections.create'],
  'POST /schedules/preview': [],
  'POST /connector_rights': [],
  'GET /custom_connectors': [],
  'POST /custom_connectors': ['sources.create'],
  'GET /custom_connectors/{connector_name}': [],
  'POST /custom_connectors/{connector_name}': ['sources.update'],
  'DELETE /custom_connectors/{connector_name}': ['sources.delete'],
  'POST /custom_connectors/{connector_name}/previews': ['sources.update'],
  'GET /connections/{connection_id}/schema_changes': [],
  'POST /connections/{connection_id}/schema_changes/review': ['connections.update'],
  'GET /connections/{connection_id}/runs/{connection_run_id}': [],
  'GET /account_connectors/{account_connector_id}/catalog': [],
  'GET /account_connectors/{account_connector_id}/discovery': [],
  'GET /tasks/{task_id}': [],
  'POST /tasks/{task_id}/export_link': ['metadata.export'],
  'GET /custom_run_plans/{plan_id}': [],
  'POST /connections/{connection_id}/verifications': ['connections.run'],
  'GET /connections/{connection_id}/verifications': [],
  'GET /verifications/{verification_id}': [],
  'POST /verifications/{verification_id}/stop': ['connections.run'],
  'POST /connections/{connection_id}/log_marks': ['connections.run'],
  'GET /connections/{connection_id}/log_progress': [],
  'POST /connections/{connection_id}/sequences/advance': ['connections.run'],
  'POST /connection_folders/move': ['connections.update'],
  'GET /saved_views': [],
  'POST /saved_views': [],
  'POST /saved_views/{saved_view_id}': [],
  'DELETE /saved_views/{saved_view_id}': [],
  'POST /billing/plan': ['billing.read'],
  'POST /api_keys': [],
  'GET /service_accounts': [],
  'POST /service_accounts': ['users.manage'],
  'GET /audit_log': ['audit.read'],
  'GET /audit_log/export': ['audit.read'],
  'POST /audit_log/verify': ['audit.read'],
};

/** Operations that need `sources.…` for a source and `destinations.…` for a destination; deletion last. */
const BY_KIND: Record<string, { verb: 'create' | 'update' | 'delete'; body?: (kind: Kind) => object }> = {
  'POST /account_connectors': {
    verb: 'create',
    body: (connector_type) => ({ name: Bun.randomUUIDv7(), connector_type, connector_name: 'sample' }),
  },
  'POST /account_connector_checks': {
    verb: 'create',
    body: (connector_type) => ({ name: 'checked', connector_type, connector_name: 'sample' }),
  },
  'POST /account_connectors/{account_connector_id}/catalog': {
    verb: 'update',
    body: () => ({ items: [{ stream_id: UNKNOWN, field_overrides: [] }] }),
  },
  'POST /account_connectors/{account_connector_id}': { verb: 'update', body: () => ({ name: Bun.randomUUIDv7() }) },
  'POST /account_connectors/{account_connector_id}/login': { verb: 'update' },
  'POST /account_connectors/{account_connector_id}/validate_parameter': {
    verb: 'update',
    body: () => ({ parameter_name: 'rows', value: 1 }),
  },
  'POST /account_connectors/{account_connector_id}/discover': { verb: 'update' },
  'GET /account_connectors/{account_connector_id}/secret_uses': { verb: 'update' },
  'GET /account_connectors/{account_connector_id}/webhook': { verb: 'update' },
  'POST /account_connectors/{account_connector_id}/differing_parameters': {
    verb: 'update',
    body: () => ({ parameters: {} }),
  },
  'DELETE /account_connectors/{account_connector_id}': { verb: 'delete' },
};
const KINDS = ['source', 'destination'] as const;
type Kind = (typeof KINDS)[number];

const served = proceduresOf([appRouter, restRouter]).map(({ endpoint }) => `${endpoint.method} ${endpoint.path}`);
/** Needs no key. */
const PUBLIC = 'POST /invitations/accept';
const isNetworkLog = (operation: string) => operation.includes('/network_logs');

/** Bodies for operations whose permission depends on the body. */
const BODIES: Record<string, object> = { 'POST /users/{user_id}': { full_name: 'X' } };

const FILLED: Record<string, string> = { connector_type: 'source', connector_name: 'sample', parameter_name: 'rows' };

function send(call: Call, operation: string, options: { id?: string; body?: object } = {}) {
  const [method, path] = operation.split(' ') as [string, string];
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => FILLED[name] ?? options.id ?? UNKNOWN);
  return call(
    method,
    filled,
    method === 'GET' || method === 'DELETE' ? undefined : (options.body ?? BODIES[operation]),
  );
}

/** A user with a system role, created by the administrator. */
async function withRole(name: string): Promise<Call> {
  const call = api.as(await api.keyWith([]));
  const { id } = (await call('GET', '/users/me')).body;
  const [role] = await t.deps.db.select().from(roles).where(eq(roles.name, name));
  const answer = await api.call('POST', `/users/${id}`, { role_ids: [role!.id] });
  expect(answer.status).toBe(200);
  return call;
}

const ALL = PERMISSIONS.filter((permission) => permission !== 'cross_account.read');
const BUNDLES: Record<string, readonly Permission[]> = {
  Administrator: ALL,
  Creator: ALL.filter((permission) => !/^(users|roles|billing|audit)\./.test(permission)),
  Billing: ['billing.read'],
  Viewer: [],
};

const callers: [name: string, held: readonly Permission[], () => Promise<Call>][] = [
  ...Object.entries(BUNDLES).map(
    ([name, held]) =>
      [`the role ${name}`, held, () => withRole(name)] as [string, readonly Permission[], () => Promise<Call>],
  ),
  ['no role', [], async () => api.as(await api.keyWith([]))],
  ...PERMISSIONS.map(
    (permission) =>
      [`${permission} alone`, [permission], async () => api.as(await api.keyWith([permission]))] as [
        string,
        readonly Permission[],
        () => Promise<Call>,
      ],
  ),
];

describe('permissions', () => {
  test('the table has every served operation', () => {
    const known = [...Object.keys(NEEDED), ...Object.keys(BY_KIND)];
    expect(
      served.filter((operation) => !known.includes(operation) && !isNetworkLog(operation) && operation !== PUBLIC),
    ).toEqual([]);
  });

  test('the system roles hold the documented permissions', async () => {
    const found = await t.deps.db.select().from(roles).where(isNull(roles.account_id));
    for (const role of found) expect(role.permissions.toSorted()).toEqual(BUNDLES[role.name]!.toSorted());
    expect(found).toHaveLength(4);
  });

  test.each(served.filter((one) => one !== PUBLIC))(
    '%s: 401 without a key, with an unknown and a malformed one',
    async (operation) => {
      for (const call of [api.anonymous, api.as('nobody-has-this-key-0123456789'), api.as('two words')]) {
        const answer = await send(call, operation);
        expect(answer.status).toBe(401);
        expect(answer.headers.get('www-authenticate')).toStartWith('Bearer');
      }
    },
  );

  test.each(callers)('%s: 403 only where a permission is missing', async (_, held, make_call) => {
    const call = await make_call();
    const wrong: string[] = [];
    for (const operation of served.filter((one) => one in NEEDED || isNetworkLog(one))) {
      const needed = NEEDED[operation] ?? [];
      const allowed = needed.length === 0 || needed.some((permission) => held.includes(permission));
      const { status, body } = await send(call, operation);
      if (allowed ? status === 403 || status === 401 || status >= 500 : status !== 403)
        wrong.push(`${operation}: ${status}`);
      if (!allowed)
        expect(body).toMatchObject({
          code: 'permission_denied',
          required_permission: needed.length === 1 ? needed[0] : needed,
        });
    }
    expect(wrong).toEqual([]);
  });

  test.each(callers)('%s: sources and destinations have separate permissions', async (_, held, make_call) => {
    const call = await make_call();
    const wrong: string[] = [];
    for (const kind of KINDS) {
      const { id } = await make[kind]();
      for (const [operation, { verb, body }] of Object.entries(BY_KIND).filter(([one]) => served.includes(one))) {
        const allowed = held.includes(`${kind}s.${verb}`);
        const { status } = await send(call, operation, { id, body: body?.(kind) });
        if (allowed ? status === 403 || status >= 500 : status !== 403)
          wrong.push(`${operation} of a ${kind}: ${status}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('a missing object is 404 where the permission depends on its kind', async () => {
    const call = api.as(await api.keyWith(['destinations.update', 'destinations.delete']));
    for (const operation of Object.keys(BY_KIND).filter((one) => one.includes('{') && served.includes(one))) {
      const answer = await send(call, operation, { body: BY_KIND[operation]!.body?.('source') });
      expect([operation, answer.status]).toEqual([operation, 404]);
    }
  });

  test('cross_account=true needs cross_account.read', async () => {
    const staff = api.as(await api.keyWith(['cross_account.read']));
    const administrator = await withRole('Administrator');
    const reads = served
      .filter((one) => /stream_runs|network_logs/.test(one))
      .map((one) => `${one}?cross_account=true`);
    expect(reads.length).toBeGreaterThan(1);
    for (const operation of reads) {
      const refused = await send(administrator, operation);
      // One of them has no such parameter.
      if (refused.status === 422) continue;
      expect([operation, refused.status, refused.body.required_permission]).toEqual([
        operation,
        403,
        'cross_account.read',
      ]);
      expect([operation, (await send(staff, operation)).status]).toEqual([operation, 404]);
    }
  });
});
