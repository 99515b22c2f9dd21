import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** In this order: each file imports only those before it. */
const NAMES =
  'host interpolation paths web models times records auth streams files schemas libraries requesters normalization incremental retrievers modules calls';

/** The part of Airbyte's CDK that the sandbox has, in Python: a package of files, as JSON. */
export const BASE = JSON.stringify(
  NAMES.split(' ').map((name) => [name, readFileSync(join(import.meta.dir, 'base', `${name}.py`), 'utf8')]),
);
