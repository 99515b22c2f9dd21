import type { Call } from './api.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every shape
type Json = any;

/** Calls a tRPC procedure. Returns its result, or status and code of its error. */
export async function rpc(
  call: Call,
  name: string,
  input?: object,
): Promise<{ status: number; result: Json; error: Json }> {
  const { status, body } = await call('POST', `/trpc/${name}`, input ?? {});
  return { status, result: body.result?.data, error: body.error?.data };
}

/** The same for queries. */
export async function rpcQuery(call: Call, name: string, input: object = {}): Promise<Awaited<ReturnType<typeof rpc>>> {
  const { status, body } = await call('GET', `/trpc/${name}?input=${encodeURIComponent(JSON.stringify(input))}`);
  return { status, result: body.result?.data, error: body.error?.data };
}
