import { afterAll, setDefaultTimeout } from 'bun:test';
import { checkExactAnswers } from '../server/lib/exact-answer.ts';
import { stopTestServer } from './support/postgres.ts';

checkExactAnswers();

// The first test that needs the database waits for its server and its template, on a busy machine for seconds.
setDefaultTimeout(30_000);

// Registered in the preload, so it runs once, after the last test file of this process.
afterAll(stopTestServer);
