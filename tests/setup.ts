import { afterAll } from 'bun:test';
import { stopTestServer } from './support/postgres.ts';

// Registered in the preload, so it runs once, after the last test file of this process.
afterAll(stopTestServer);
