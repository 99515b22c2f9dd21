import { dlopen, FFIType, ptr } from 'bun:ffi';
import { builtinModules, createRequire } from 'node:module';

/**
 * Closes a process before it runs code of users. The operating system refuses it every file, socket and process from now
 * on; the realm of JavaScript has no names of Bun or Node and compiles no text. Each of both suffices against code that
 * finds a way out of Python.
 */

const LIBRARY = process.platform === 'darwin' ? 'libSystem.dylib' : 'libc.so.6';
/**
 * Numbers of RLIMIT_FSIZE, RLIMIT_CORE and RLIMIT_NOFILE. A process also needs files to start another one. RLIMIT_NPROC
 * counts threads, and the engine of JavaScript starts them when it likes.
 */
const LIMITS = process.platform === 'darwin' ? [1, 4, 8] : [1, 4, 7];
/** What could delete a file or end a process without opening anything, and what compiles text. */
const MODULES = /^(node:)?(fs|fs\/promises|child_process|net|dgram|worker_threads|vm|module|process)$/;
const NOBODY = 65_534;

const NAMES =
  'globalThis Infinity NaN undefined parseInt parseFloat isNaN isFinite encodeURIComponent decodeURIComponent encodeURI ' +
  'decodeURI Object Boolean Symbol Number BigInt Math Date String RegExp Array Map Set WeakMap WeakSet WeakRef Promise ' +
  'FinalizationRegistry ArrayBuffer DataView Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array ' +
  'Uint32Array Float16Array Float32Array Float64Array BigInt64Array BigUint64Array Atomics SharedArrayBuffer JSON Reflect ' +
  'Proxy Iterator Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError WebAssembly ' +
  'performance crypto TextDecoder TextEncoder Function eval';

const refuse = () => {
  throw new Error('Not available in the sandbox');
};

/** Everything that is used afterwards must be loaded before. */
export function seal(): void {
  const { symbols } = dlopen(LIBRARY, { setrlimit: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 } });
  const none = new BigUint64Array(2);
  if (process.getuid?.() === 0) {
    process.setgroups?.([]);
    process.setgid?.(NOBODY);
    process.setuid?.(NOBODY);
  }
  for (const limit of LIMITS) {
    if (symbols.setrlimit(limit, ptr(none)) !== 0) throw new Error('The limits of the process cannot be set');
  }
  emptyModules();
  emptyBun();
  emptyRealm();
}

/** The engine of Python holds modules of Node, such as that of files. */
function emptyModules(): void {
  const load = createRequire(import.meta.url);
  const modules = builtinModules
    .filter((name) => MODULES.test(name))
    .map((name) => load(name) as Record<string, unknown>);
  for (const module of modules) emptyModule(module);
}

/** The name itself cannot be removed, and neither can a few functions that need sockets. */
function emptyBun(): void {
  for (const name of Reflect.ownKeys(Bun)) {
    if (!Reflect.deleteProperty(Bun, name)) Reflect.defineProperty(Bun, name, { value: undefined });
  }
  Reflect.setPrototypeOf(Bun, null);
  Reflect.preventExtensions(Bun);
}

function emptyModule(module: Record<string, unknown>): void {
  for (const name of Object.keys(module)) {
    const found = Object.getOwnPropertyDescriptor(module, name);
    if (found?.configurable && typeof found.value === 'function')
      Object.defineProperty(module, name, { value: refuse });
  }
}

/** What stays of `Function`: its prototype, with which the engine of Python compares and calls. */
function NoFunction(): never {
  return refuse();
}

/** From now on no text becomes code. Comes before the engine of Python, which keeps what it finds. */
export function refuseCode(): void {
  const kinds = [() => {}, async () => {}, function* () {}, async function* () {}];
  for (const kind of kinds) {
    const prototype = Object.getPrototypeOf(kind) as object;
    Object.defineProperty(prototype, 'constructor', { value: undefined, writable: false, configurable: false });
  }
  NoFunction.prototype = Object.getPrototypeOf(NoFunction);
  Object.assign(globalThis, { Function: NoFunction, eval: refuse });
}

function emptyRealm(): void {
  const known = new Set(NAMES.split(' '));
  for (const name of Reflect.ownKeys(globalThis)) {
    if (known.has(String(name)) || typeof name === 'symbol') continue;
    if (!Reflect.deleteProperty(globalThis, name)) Reflect.set(globalThis, name, undefined);
  }
  // The engine of Python reports its own end there.
  Object.assign(globalThis, { console: Object.freeze({ log: silent, warn: silent, error: silent }) });
}

const silent = () => {};
