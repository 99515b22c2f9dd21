import { router } from './api/procedure.ts';
import { accountConnectorsRouter } from './resources/account-connectors/router.ts';
import { auditExportRouter, auditRouter } from './resources/audit/router.ts';
import { automationRouter } from './resources/automation/router.ts';
import { billingRouter } from './resources/billing/router.ts';
import { connectionsRouter } from './resources/connections/router.ts';
import { connectorsRouter } from './resources/connectors/router.ts';
import { customConnectorsRouter } from './resources/custom-connectors/router.ts';
import { cutOverRouter } from './resources/connections/cut-over/router.ts';
import { networkLogsRouter } from './resources/network-logs/router.ts';
import { overviewRouter } from './resources/overview/router.ts';
import { rolesRouter } from './resources/roles/router.ts';
import { runRouter, runsRouter } from './resources/runs/router.ts';
import { savedViewsRouter } from './resources/saved-views/router.ts';
import { templatesRouter } from './resources/connections/templates/router.ts';
import { avatarRouter, usersRouter } from './resources/users/router.ts';
import { verificationsRouter } from './resources/verifications/router.ts';

/** Every procedure that both faces serve: REST by its endpoint, tRPC by its name. */
export const appRouter = router({
  account_connectors: accountConnectorsRouter,
  audit: auditRouter,
  automation: automationRouter,
  billing: billingRouter,
  connections: connectionsRouter,
  connectors: connectorsRouter,
  custom_connectors: customConnectorsRouter,
  cut_over: cutOverRouter,
  overview: overviewRouter,
  roles: rolesRouter,
  runs: runsRouter,
  saved_views: savedViewsRouter,
  templates: templatesRouter,
  users: usersRouter,
  verifications: verificationsRouter,
});

/** Procedures that REST alone serves: those whose answer is no JSON, and those that tRPC has in another form. */
export const restRouter = router({
  audit: auditExportRouter,
  network_logs: networkLogsRouter,
  runs: runRouter,
  users: avatarRouter,
});

/** What typed clients import, as a type only. */
export type AppRouter = typeof appRouter;
