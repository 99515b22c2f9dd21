import { afterAll } from 'bun:test';
import { checkExactAnswers } from '../server/api/trusted-output.ts';
import { limitHangs } from './support/hangs.ts';
import { stopTestServer } from './support/postgres.ts';

checkExactAnswers();

limitHangs();

// Registered in the preload, so it runs once, after the last test file of this process.
afterAll(stopTestServer);
