import { afterAll, setDefaultTimeout } from 'bun:test';
import { checkExactAnswers } from '../server/lib/exact-answer.ts';
import { stopTestServer } from './support/postgres.ts';

checkExactAnswers();

// Ends what hangs, tests and hooks alike. What has to be quick says so by an `expect`: a machine may be busy.
setDefaultTimeout(180_000);

// Registered in the preload, so it runs once, after the last test file of this process.
afterAll(stopTestServer);
