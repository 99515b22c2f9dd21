import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createSnapshot } from './sandbox.ts';

/** Writes a snapshot to the path of its argument. */
const path = process.argv[2] ?? '';
const part = `${path}.${process.pid}`;
mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
writeFileSync(part, await createSnapshot(), { mode: 0o600 });
renameSync(part, path);
