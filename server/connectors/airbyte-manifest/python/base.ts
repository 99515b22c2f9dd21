import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The part of Airbyte's CDK that the sandbox has, in Python. */
export const BASE = readFileSync(join(import.meta.dir, 'base.py'), 'utf8');
