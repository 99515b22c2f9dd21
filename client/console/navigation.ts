import type { IconName } from './components/icon.tsx';

interface NavigationItem {
  label: string;
  href: string;
  icon: IconName;
}

/** The sidebar, by group. */
export const NAVIGATION: { label: string; items: NavigationItem[] }[] = [
  {
    label: 'Pipelines',
    items: [
      { label: 'Overview', href: '/', icon: 'overview' },
      { label: 'Connections', href: '/console/connections', icon: 'connection' },
      { label: 'Sources', href: '/console/sources', icon: 'source' },
      { label: 'Destinations', href: '/console/destinations', icon: 'destination' },
    ],
  },
  {
    label: 'Automation',
    items: [
      { label: 'Triggers', href: '/console/triggers', icon: 'trigger' },
      { label: 'Cases', href: '/console/cases', icon: 'case' },
      { label: 'Events', href: '/console/events', icon: 'logs' },
    ],
  },
  {
    label: 'Account',
    items: [
      { label: 'Usage', href: '/console/usage', icon: 'usage' },
      { label: 'Users', href: '/console/users', icon: 'users' },
      { label: 'Roles', href: '/console/roles', icon: 'role' },
      { label: 'Audit log', href: '/console/audit', icon: 'logs' },
      { label: 'Profile', href: '/console/profile', icon: 'profile' },
    ],
  },
];
