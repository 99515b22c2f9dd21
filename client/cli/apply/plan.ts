import type { ApiClient } from '../../api.ts';
import { UsageError } from '../exit.ts';
import { type Current, findNamed } from './current.ts';
import { hasMask, MASK } from '../../pipeline-file/mask.ts';
import { type Change, differences, identityOf, SECRET_KEYS } from './difference.ts';
import type { Path, Pipelines, Wanted } from './document.ts';
import { type Body, KINDS, type Kind } from '../../pipeline-file/keys.ts';
import { withLocation } from './location.ts';
import { connectionRequest, personBody, triggerRequest } from './requests.ts';
import { validate } from './validate.ts';

export type Step =
  | { action: 'create'; wanted: Wanted }
  | { action: 'update'; wanted: Wanted; id: string; revision?: number; changes: Change[] }
  | { action: 'delete'; kind: Kind; name: string; id: string };

type OwnedKind = Exclude<Kind, 'roles' | 'users'>;

export interface PlanOptions {
  prune: boolean;
  rotateSecrets: boolean;
}

/** The steps in executable order. @throws UsageError with the location of a setting that cannot be applied. */
export async function planSteps(
  api: ApiClient,
  { wanted, owners, current, options }: Pipelines & { current: Current; options: PlanOptions },
): Promise<{ steps: Step[]; unchanged: number }> {
  const steps: Step[] = [];
  for (const one of wanted) {
    checkReferences(one, { wanted, current });
    const actual = findNamed(current, one.kind, one.name);
    if (!actual) {
      await validate(api, one, current);
      steps.push({ action: 'create', wanted: one });
      continue;
    }
    const changes = await changesOf(api, one, { actual, current, rotate: options.rotateSecrets });
    if (changes.length === 0) continue;
    await validate(api, one, current);
    const revision = 'revision' in actual ? actual.revision : undefined;
    steps.push({ action: 'update', wanted: one, id: actual.id, revision, changes });
  }
  const unchanged = wanted.length - steps.length;
  return { steps: options.prune ? [...steps, ...pruned({ wanted, owners }, current)] : steps, unchanged };
}

function checkReferences(one: Wanted, { wanted, current }: { wanted: Wanted[]; current: Current }): void {
  for (const { path, kinds, name } of referencesOf(one)) {
    const lower = String(name).toLowerCase();
    const isKnown = kinds.some(
      (kind) =>
        findNamed(current, kind, name) ??
        wanted.some((other) => other.kind === kind && other.name.toLowerCase() === lower),
    );
    if (!isKnown)
      throw new UsageError(
        `${one.at(path)}: ${String(path.at(-1)).replace('_', ' ')} "${String(name)}" exists neither in the file nor in the account`,
      );
  }
}

function referencesOf({ kind, body }: Wanted): { path: Path; kinds: (Kind | 'known_roles')[]; name: unknown }[] {
  if (kind === 'users') {
    const roles = Array.isArray(body.roles) ? body.roles : [];
    return roles.map((name, at) => ({ path: ['roles', at], kinds: ['roles', 'known_roles'], name }));
  }
  if (kind === 'connections') {
    return [
      { path: ['source'], kinds: ['sources'], name: body.source },
      { path: ['destination'], kinds: ['destinations'], name: body.destination },
    ];
  }
  const actions = kind === 'triggers' && Array.isArray(body.actions) ? (body.actions as Body[]) : [];
  return actions.flatMap((action, at) => [
    ...(action?.connection
      ? [{ path: ['actions', at, 'connection'], kinds: ['connections'] as Kind[], name: action.connection }]
      : []),
    ...(action?.account_connector
      ? [
          {
            path: ['actions', at, 'account_connector'],
            kinds: ['destinations', 'sources'] as Kind[],
            name: action.account_connector,
          },
        ]
      : []),
  ]);
}

async function changesOf(
  api: ApiClient,
  one: Wanted,
  { actual, current, rotate }: { actual: Current[Kind][number]; current: Current; rotate: boolean },
): Promise<Change[]> {
  const renamed = one.name === actual.name ? [] : [{ path: 'name', from: actual.name, to: one.name }];
  if (one.kind === 'roles' || one.kind === 'users') return [...renamed, ...differences(personBody(one), actual)];
  if (one.kind === 'triggers') return [...renamed, ...triggerChanges(one, { actual, current, rotate })];
  if (one.kind === 'connections')
    return [...renamed, ...connectionChanges(one, actual as Current['connections'][number])];
  const connector = actual as Current['sources'][number];
  const { connector: name, parameters = {}, ssh_tunnel, ...rest } = one.body;
  if (name !== connector.connector_name)
    throw new UsageError(
      `${one.at(['connector'])}: the connector of "${one.name}" is ${connector.connector_name} and cannot change`,
    );
  return [
    ...renamed,
    ...(await parameterChanges(api, one, { connector, parameters: parameters as Body, rotate })),
    ...differences(rest, connector),
    ...tunnelChanges(ssh_tunnel, connector.ssh_tunnel, rotate),
  ];
}

/** Only the service knows the secrets, so it compares them. */
async function parameterChanges(
  api: ApiClient,
  one: Wanted,
  { connector, parameters, rotate }: { connector: Current['sources'][number]; parameters: Body; rotate: boolean },
): Promise<Change[]> {
  const differing = await api.account_connectors.differingParameters
    .mutate({ account_connector_id: connector.id, parameters })
    .catch((error: unknown) => {
      throw withLocation(one, error);
    });
  const secret = (name: string) => hasMask(connector.parameters[name]);
  const rotated = rotate ? Object.keys(parameters).filter(secret) : [];
  return [...new Set([...differing, ...rotated])].map((name) => ({
    path: `parameters.${name}`,
    from: connector.parameters[name] ?? null,
    to: secret(name) ? MASK : parameters[name],
  }));
}

/** Private keys cannot be compared: only a different address or username counts as a change. */
function tunnelChanges(wanted: unknown, actual: unknown, rotate: boolean): Change[] {
  if (wanted === undefined) return [];
  if (wanted === null || actual === null || typeof wanted !== 'object')
    return differences(wanted, actual, 'ssh_tunnel');
  const visible = Object.fromEntries(Object.entries(wanted).filter(([key]) => !SECRET_KEYS.includes(key)));
  const isRotated = rotate && SECRET_KEYS.some((key) => key in wanted);
  return [
    ...differences(visible, actual, 'ssh_tunnel'),
    ...(isRotated ? [{ path: 'ssh_tunnel.private_key', from: MASK, to: MASK }] : []),
  ];
}

function connectionChanges(one: Wanted, actual: Current['connections'][number]): Change[] {
  const { source, destination } = one.body;
  for (const [key, name] of Object.entries({ source, destination })) {
    const present = actual[key as 'source' | 'destination'].name;
    if (String(name).toLowerCase() !== present.toLowerCase()) {
      throw new UsageError(`${one.at([key])}: the ${key} of "${one.name}" is "${present}" and cannot change`);
    }
  }
  const { streams, ...rest } = connectionRequest(one.body);
  const named = new Set((streams ?? []).map(identityOf));
  const compared = actual.streams.filter((stream) => stream.selected || named.has(identityOf(stream)));
  return [...differences(rest, actual), ...differences(streams, compared, 'streams')];
}

function triggerChanges(
  one: Wanted,
  { actual, current, rotate }: { actual: Current[Kind][number]; current: Current; rotate: boolean },
): Change[] {
  const { expect, ...body } = triggerRequest(one.body, current);
  const hasSecret = (body.actions as Body[]).some((action) => action.secret);
  return [
    ...differences(body, actual),
    // The service returns `expect` as a rule, so only a rule can be compared.
    ...(typeof expect === 'string' ? differences({ expect }, actual) : []),
    ...(rotate && hasSecret ? [{ path: 'actions', from: MASK, to: MASK }] : []),
  ];
}

/**
 * Dependents are deleted before what they depend on, and only what has the owner of one of the files; a file without owner
 * stands for what has none. Roles and users are never deleted: a file that lacks them says nothing.
 */
function pruned({ wanted, owners }: Pipelines, current: Current): Step[] {
  const keeps = (kind: Kind, name: string) =>
    wanted.some((one) => one.kind === kind && one.name.toLowerCase() === name.toLowerCase());
  return KINDS.filter((kind): kind is OwnedKind => kind !== 'roles' && kind !== 'users')
    .toReversed()
    .flatMap((kind) =>
      current[kind]
        .filter(({ name, owner }) => owners.includes(owner) && !keeps(kind, name))
        .map(({ id, name }) => ({ action: 'delete' as const, kind, name, id })),
    );
}
