import type { RouterOutputs } from './api.ts';

/** What procedures answer, by the names that more than one file of the console uses. */
export type AccountConnector = RouterOutputs['account_connectors']['get'];
export type Case = RouterOutputs['automation']['getCase'];
export type CatalogItem = RouterOutputs['account_connectors']['catalog'][number];
export type Connection = RouterOutputs['connections']['get'];
export type CustomRunPlan = RouterOutputs['runs']['preview'];
export type Language = RouterOutputs['automation']['ruleLanguage'];
export type Role = RouterOutputs['roles']['list'][number];
export type Summary = RouterOutputs['connections']['summaries'][number];
export type Usage = RouterOutputs['billing']['aggregatedUsage'];
export type User = RouterOutputs['users']['list'][number];
