/** All permissions. Procedures declare them, roles grant them. */
export const PERMISSIONS = [
  'connections.create',
  'connections.update',
  'connections.delete',
  'connections.run',
  'sources.create',
  'sources.update',
  'sources.delete',
  'destinations.create',
  'destinations.update',
  'destinations.delete',
  'triggers.create',
  'triggers.update',
  'triggers.delete',
  'cases.update',
  'users.manage',
  'roles.manage',
  'billing.read',
  'audit.read',
  'metadata.export',
  'data.preview',
  'data.preview_destination',
  'cross_account.read',
] as const;
export type Permission = (typeof PERMISSIONS)[number];

const startsWith = (...prefixes: string[]) =>
  PERMISSIONS.filter((permission) => prefixes.some((prefix) => permission.startsWith(prefix)));

/** The roles that every account has. None includes `cross_account.read`, which is for the operator's staff. */
export const SYSTEM_ROLES: Record<'Administrator' | 'Creator' | 'Billing' | 'Viewer', readonly Permission[]> = {
  Administrator: PERMISSIONS.filter((permission) => permission !== 'cross_account.read'),
  Creator: startsWith(
    'connections.',
    'sources.',
    'destinations.',
    'triggers.',
    'cases.update',
    'metadata.export',
    'data.preview',
  ),
  Billing: ['billing.read'],
  Viewer: [],
};
