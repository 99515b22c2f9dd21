import type { ApiClient } from '../api.ts';

export type Run = Awaited<ReturnType<ApiClient['runs']['list']['query']>>[number];
export type StreamRun = Awaited<ReturnType<ApiClient['runs']['streamRuns']['query']>>[number];
