import type { accounts, apiKeys, roles, users } from './accounts.ts';
import type { events, tasks } from './automation.ts';
import type { connectionStreams, connections } from './connections.ts';
import type { accountConnectors, catalogStreams } from './connectors.ts';
import type { customRunPlans } from './custom-runs.ts';
import type { connectionRuns, streamRuns } from './runs.ts';
import type { cases, deliveries, triggerGroups, triggers } from './triggers.ts';
import type { verifications } from './verifications.ts';

/** A row of each table as a query returns it. Declared here once, so that one name means one row everywhere. */
export type AccountRow = typeof accounts.$inferSelect;
export type AccountConnectorRow = typeof accountConnectors.$inferSelect;
export type ApiKeyRow = typeof apiKeys.$inferSelect;
export type CaseRow = typeof cases.$inferSelect;
export type CatalogStreamRow = typeof catalogStreams.$inferSelect;
export type ConnectionRow = typeof connections.$inferSelect;
export type CustomRunPlanRow = typeof customRunPlans.$inferSelect;
export type DeliveryRow = typeof deliveries.$inferSelect;
export type EventRow = typeof events.$inferSelect;
export type RoleRow = typeof roles.$inferSelect;
export type RunRow = typeof connectionRuns.$inferSelect;
export type StreamRow = typeof connectionStreams.$inferSelect;
export type StreamRunRow = typeof streamRuns.$inferSelect;
export type TaskRow = typeof tasks.$inferSelect;
export type TriggerGroupRow = typeof triggerGroups.$inferSelect;
export type TriggerRow = typeof triggers.$inferSelect;
export type UserRow = typeof users.$inferSelect;
export type VerificationRow = typeof verifications.$inferSelect;
