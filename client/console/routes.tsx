import { lazy } from 'react';

const accountConnector = lazy(() => import('./pages/account-connectors/account-connector.tsx'));
const casePage = lazy(() => import('./pages/cases/case.tsx'));
const newAccountConnector = lazy(() => import('./pages/account-connectors/new-account-connector.tsx'));

/** Each page is a chunk of its own, loaded when it is first opened. The first match wins. */
export const ROUTES = [
  { path: '/', page: lazy(() => import('./pages/overview/overview.tsx')) },
  { path: '/console', page: lazy(() => import('./pages/overview/overview.tsx')) },
  { path: '/console/connections', page: lazy(() => import('./pages/connections/connections.tsx')) },
  { path: '/console/connections/new', page: lazy(() => import('./pages/wizard/wizard.tsx')) },
  {
    path: '/console/connections/:connection_id/runs/:connection_run_id',
    page: lazy(() => import('./pages/run/run.tsx')),
  },
  { path: '/console/connections/:connection_id/plan', page: lazy(() => import('./pages/custom-run/custom-run.tsx')) },
  { path: '/console/connections/:connection_id', page: lazy(() => import('./pages/connection/connection.tsx')) },
  { path: '/console/triggers', page: lazy(() => import('./pages/triggers/triggers.tsx')) },
  { path: '/console/triggers/:trigger_id', page: lazy(() => import('./pages/triggers/trigger.tsx')) },
  { path: '/console/cases', page: lazy(() => import('./pages/cases/cases.tsx')) },
  { path: '/console/cases/:case_id', page: casePage },
  { path: '/cases/:case_id', page: casePage },
  { path: '/console/events', page: lazy(() => import('./pages/events/events.tsx')) },
  { path: '/console/usage', page: lazy(() => import('./pages/usage/usage.tsx')) },
  { path: '/console/audit', page: lazy(() => import('./pages/audit/audit.tsx')) },
  { path: '/console/users', page: lazy(() => import('./pages/users/users.tsx')) },
  { path: '/console/roles', page: lazy(() => import('./pages/roles/roles.tsx')) },
  { path: '/console/sources', page: lazy(() => import('./pages/account-connectors/sources.tsx')) },
  { path: '/console/sources/new', page: newAccountConnector },
  { path: '/console/sources/:account_connector_id', page: accountConnector },
  { path: '/console/sources/:account_connector_id/catalog', page: lazy(() => import('./pages/catalog/catalog.tsx')) },
  { path: '/console/destinations/new', page: newAccountConnector },
  { path: '/console/destinations/:account_connector_id', page: accountConnector },
  { path: '/console/destinations', page: lazy(() => import('./pages/account-connectors/destinations.tsx')) },
  { path: '/console/profile', page: lazy(() => import('./pages/profile/profile.tsx')) },
];

export const NotFoundPage = lazy(() => import('./pages/not-found.tsx'));
