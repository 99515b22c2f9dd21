import { loadPyodide } from 'pyodide';
import { BASE } from './base.ts';

/** What Python calls to have the service do something: a name with arguments, as JSON. */
export type Host = (call: string) => string;

interface Callable {
  (...args: unknown[]): unknown;
  destroy(): void;
}

const silent = { stdin: () => null, stdout: () => {}, stderr: () => {} };
const options = {
  ...silent,
  jsglobals: Object.freeze(Object.create(null)) as object,
  env: { HOME: '/home/pyodide', TZ: 'UTC' },
};

const IMPORT = `
import json, sys, types
base = types.ModuleType("base")
base.__path__ = []
sys.modules["base"] = base
for name, text in json.loads(source):
    module = types.ModuleType(f"base.{name}")
    sys.modules[module.__name__] = module
    exec(compile(text, f"base/{name}.py", "exec"), module.__dict__)
    setattr(base, name, module)
`;

/** It takes seconds without a snapshot. */
async function start(more: Record<string, unknown>) {
  const given: Parameters<typeof loadPyodide>[0] = { ...options, ...more };
  return await loadPyodide(given);
}

/** The memory of a Python that has loaded the base. */
export async function createSnapshot(): Promise<Uint8Array> {
  const python = await start({ _makeSnapshot: true });
  python.globals.set('source', BASE);
  python.runPython(IMPORT);
  return (python as unknown as { makeMemorySnapshot(): Uint8Array }).makeMemorySnapshot();
}

/** A Python that is ready: takes a call as JSON and returns the result as JSON. */
export async function openSandbox(snapshot: Uint8Array | null, host: Host): Promise<(call: string) => string> {
  const python = await start(snapshot ? { _loadSnapshot: snapshot } : {});
  if (!snapshot) {
    python.globals.set('source', BASE);
    python.runPython(IMPORT);
  }
  const module = python.runPython('base.calls') as { dispatch: Callable; close: Callable };
  for (const name of ['js', 'pyodide_js']) python.unregisterJsModule(name);
  const run = module.dispatch;
  module.close(host);
  return (call) => run(call) as string;
}
