import { afterAll, expect, test } from 'bun:test';
import { PYTHON_LIMITS, PythonSession } from '../../server/connectors/airbyte-manifest/python/session.ts';
import { startHttpServer } from '../support/http-server.ts';

// Code of users in the sandbox: none of it gets out.

const server = startHttpServer();
const stop = new AbortController();
afterAll(async () => {
  stop.abort();
  await server.close();
});
const port = new URL(server.url).port;

const SOURCE = `
from airbyte_cdk.sources.declarative.transformations import RecordTransformation

class Try(RecordTransformation):
    def transform(self, record, **_):
        scope = {}
        try:
            exec(record["code"], scope)
            record["out"] = repr(scope.get("out"))[:200]
        except BaseException as error:
            record["failed"] = f"{type(error).__name__}: {error}"[:200]
        del record["code"]
`;
const session = (limits = PYTHON_LIMITS) =>
  new PythonSession(
    { files: { 'components.py': SOURCE }, config: {}, signal: stop.signal, redact: (text) => text, limits },
    () => ({}),
  );
const component = { type: 'CustomTransformation', class_name: 'components.Try' };
let shared = session();
const run = async (code: string, where = shared) => {
  const [record] = (await where.call(component, 'transform', [[{ code }], {}, null])) as Record<string, string>[];
  return record ?? {};
};

const JS =
  'import gc, base\nfound = [base.host._host, *(one for one in gc.get_objects() if "JsProxy" in repr(type(one).__mro__))]\n';
const HOST = 'import base\nhost = base.host._host\n';

/** What fails, or returns nothing of the machine. */
const WAYS: [name: string, code: string][] = [
  [
    'socket',
    `import socket\ns = socket.create_connection(("127.0.0.1", ${port}), 2)\ns.send(b"GET / HTTP/1.0\\r\\n\\r\\n")\nout = s.recv(10)`,
  ],
  ['urllib', `import urllib.request\nout = urllib.request.urlopen("http://127.0.0.1:${port}/").read()`],
  [
    'http.client',
    `import http.client\nc = http.client.HTTPConnection("127.0.0.1", ${port})\nc.request("GET", "/")\nout = c.getresponse().status`,
  ],
  ['asyncio', `import asyncio\nasyncio.run(asyncio.open_connection("127.0.0.1", ${port}))`],
  ['dns', 'import socket\nout = socket.create_connection(("localhost", 1), 1)'],
  ['open', 'out = open("/etc/passwd").read()'],
  ['os.open', 'import os\nout = os.read(os.open("/etc/hostname", 0), 10)'],
  ['proc', 'out = open("/proc/self/environ").read()'],
  ['home', 'import os\nout = open(os.path.expanduser("~/.ssh/id_rsa")).read()'],
  ['node_modules', `out = open(${JSON.stringify(import.meta.path)}).read()`],
  ['subprocess', 'import subprocess\nout = subprocess.check_output(["id"])'],
  ['os.system', 'import os\nassert os.system("id") == 0'],
  ['fork', 'import os\nout = os.fork()'],
  ['exec', 'import os\nos.execv("/bin/sh", ["sh"])'],
  ['spawn', 'import os\nout = os.posix_spawn("/bin/sh", ["sh"], {})'],
  ['thread', 'import threading\nt = threading.Thread(target=print)\nt.start()'],
  ['multiprocessing', 'import multiprocessing\nmultiprocessing.Process(target=print).start()'],
  ['js', 'import js\nout = js.process'],
  ['from js', 'from js import fetch, process, Bun'],
  ['js by name', 'out = __import__("js")'],
  ['js by importlib', 'import importlib\nout = importlib.import_module("js")'],
  ['js in modules', 'import sys\nout = sys.modules["js"]'],
  ['pyodide_js', 'import pyodide_js\nout = pyodide_js.FS'],
  ['pyodide.code', 'from pyodide.code import run_js\nout = run_js("process.pid")'],
  ['pyodide.http', `from pyodide.http import open_url\nout = open_url("http://127.0.0.1:${port}/").read()`],
  ['pyodide.ffi', 'from pyodide.ffi import create_proxy\nout = create_proxy(print)'],
  ['pyodide core', 'import _pyodide_core\nout = _pyodide_core'],
  ['micropip', 'import micropip\nmicropip.install("x")'],
  ['ctypes', 'import ctypes\nout = ctypes.CDLL(None).emscripten_run_script_int(b"process.pid")'],
  [
    'ctypes by the table',
    'import _imp, importlib.machinery as m\nc = _imp.create_builtin(m.ModuleSpec("_ctypes", None))\n_imp.exec_builtin(c)\nimport sys\nsys.modules["_ctypes"] = c\nsys.meta_path[:] = [one for one in sys.meta_path if hasattr(one, "create_module") is False]\nimport ctypes\nout = ctypes.CDLL(None).emscripten_run_script_int(b"process.pid")\nassert out > 0',
  ],
  [
    'the core by the table',
    'import _imp, importlib.machinery as m\nc = _imp.create_builtin(m.ModuleSpec("_pyodide_core", None))\n_imp.exec_builtin(c)\nout = c.js.process',
  ],
  ['Function by the host', `${HOST}out = host.constructor("return process.pid")()`],
  ['Function by its prototype', `${HOST}out = host.__proto__.constructor("return 1")()`],
  [
    'Object by the host',
    `${HOST}o = host.__proto__.__proto__.constructor\nout = o.getOwnPropertyNames(host.call(None)).to_py() and o.constructor("return process")()`,
  ],
  ['this of the host', `${HOST}out = host.call.call(host.valueOf, None).process.pid`],
  ['bind of the host', `${HOST}out = host.bind(None).constructor("return globalThis")()`],
  [
    'every JavaScript object',
    `${JS}assert found\nfor one in found:\n    for name in ("process", "Bun", "fetch", "require", "FS", "constructor", "eval"):\n        if getattr(one, name, None) is not None:\n            out = (one, name)\nassert "out" in globals()`,
  ],
  [
    'environment',
    'import os\nout = [name for name in os.environ if name not in ("HOME", "TZ", "PATH", "LANG", "_", "USER", "LOGNAME", "PWD", "PYTHONINSPECT", "LD_LIBRARY_PATH")]\nassert out',
  ],
  ['mount', 'import os\nout = os.listdir("/mnt/host")'],
  ['requests to files', 'import requests\nout = requests.get("file:///etc/passwd").text'],
  ['a request without the service', `import requests\nout = requests.get("http://127.0.0.1:${port}/").text`],
  ['recursion', 'def f(n):\n    return f(n + 1)\nf(0)'],
  ['deep values', 'out = []\nfor _ in range(100000):\n    out = [out]\nrepr(out)'],
  ['exit', 'import sys\nsys.exit(3)'],
  ['abort of a component', 'raise KeyboardInterrupt()'],
];

test('no way leads out of the sandbox', async () => {
  const outcomes: Record<string, string> = {};
  for (const [name, code] of WAYS) {
    try {
      const { out, failed } = await run(code);
      if (failed === undefined) outcomes[name] = `${out}`;
    } catch (error) {
      // It ended its own process, and nothing else.
      expect((error as { code?: string }).code).toBe('python_ended');
      shared = session();
    }
  }
  expect(outcomes).toEqual({});
  expect(server.seen).toEqual([]);
  // It still works.
  expect(await run('out = 1 + 1')).toEqual({ out: '2' });
}, 600_000);

test('limits end a component, and nothing else', async () => {
  const limits = { ms: 20_000, cpu_ms: 500, memory_mb: 420 };
  const cases = [
    ['cpu', 'while True:\n    pass'],
    ['memory', 'out = []\nwhile True:\n    out.append(bytearray(20_000_000))'],
    ['memory', 'out = None\nrecord = "x" * 150_000_000\nraise ValueError(record + record)'],
  ];
  for (const [limit, code] of cases) {
    const failed = await run(code ?? '', session({ ...limits, cpu_ms: limit === 'cpu' ? 500 : 20_000 })).catch(
      (error: Error) => error.message,
    );
    expect(failed).toStartWith(
      `A call of components.py used more than ${limit === 'cpu' ? '0.5 s of processor time' : '420 MB of memory'}`,
    );
  }
}, 600_000);

test('the operating system refuses a closed process everything, whatever code runs in it', async () => {
  const seal = new URL('../../server/connectors/airbyte-manifest/python/seal.ts', import.meta.url).pathname;
  const program = `
    import { openSync, writeSync } from 'node:fs';
    import { refuseCode, seal } from ${JSON.stringify(seal)};
    const { spawnSync } = Bun;
    refuseCode();
    seal();
    const tries = {
      read: () => openSync('/etc/passwd', 'r'),
      write: () => openSync('/tmp/sealed', 'w'),
      spawn: () => spawnSync(['/bin/true']),
      module: () => openSync.constructor('return 1')(),
      eval: () => (0, eval)('1'),
      names: () => { if (typeof process + typeof fetch + typeof Bun.spawn + typeof Bun.file !== 'undefined'.repeat(4)) return 1; throw 0; },
    };
    for (const [name, attempt] of Object.entries(tries)) {
      let done = false;
      try { attempt(); done = true; } catch {}
      writeSync(1, name + (done ? ' worked ' : ' refused '));
    }`;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, '-e', program]);
  expect([stdout.toString().trim(), stderr.toString().slice(0, 500)]).toEqual([
    'read refused write refused spawn refused module refused eval refused names refused',
    '',
  ]);
});
