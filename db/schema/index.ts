export * from './accounts.ts';
export * from './automation.ts';
export * from './connections.ts';
export * from './connectors.ts';
export * from './runs.ts';
