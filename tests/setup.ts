import { afterAll } from 'bun:test';
import { checkTrustedOutputs } from '../server/api/trusted-output.ts';
import { raiseMemoryCeiling } from '../server/transfer/pace/limit-memory-growth.ts';
import { limitHangs } from './support/hangs.ts';
import { runEndSteps } from './support/at-end.ts';
import { loadServiceBundle } from './support/service-bundle.ts';

checkTrustedOutputs();
raiseMemoryCeiling(1024);

// For the processes that tests start; `testConfig` sets it for this one.
process.env.TEST_CONNECTORS = '1';
Object.assign(process.env, loadServiceBundle());

limitHangs();

// Registered in the preload: runs after the last test file, under `--parallel` after each file of a process.
afterAll(runEndSteps);
