import { lazy } from 'react';

/** Each page is a file of its own to the browser, loaded when it is first opened. The first match counts. */
export const ROUTES = [
  { path: '/', page: lazy(() => import('./pages/overview/overview.tsx')) },
  { path: '/console', page: lazy(() => import('./pages/overview/overview.tsx')) },
  { path: '/console/connections', page: lazy(() => import('./pages/connections/connections.tsx')) },
  {
    path: '/console/connections/:connection_id/runs/:connection_run_id',
    page: lazy(() => import('./pages/run/run.tsx')),
  },
  { path: '/console/profile', page: lazy(() => import('./pages/profile.tsx')) },
];

export const NotFoundPage = lazy(() => import('./pages/not-found.tsx'));
