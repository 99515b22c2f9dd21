type Package = typeof import('@duckdb/node-api');
type Bindings = typeof import('@duckdb/node-bindings');

let loaded: Package | null = null;

/** Its C interface, for what the package copies value by value. */
export const duckdbBindings = (): Bindings => require('@duckdb/node-bindings') as Bindings;

/** DuckDB, loaded with its first use: that takes an eighth of the start of a worker, and most workers never use it. */
export const duckdb = (): Package => (loaded ??= load());

function load(): Package {
  const accessors = require('@duckdb/node-api/lib/vectors/dataAccessors.js') as object;
  // The package's own decoder takes U+FEFF at the start of each text for a byte order mark, and drops it.
  Object.assign(accessors, { textDecoder: new TextDecoder('utf-8', { ignoreBOM: true, fatal: true }) });
  return require('@duckdb/node-api') as Package;
}
