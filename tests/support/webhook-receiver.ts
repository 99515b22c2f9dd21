import { afterAll } from 'bun:test';
import { Webhook } from 'standardwebhooks';

export interface ReceivedCall {
  headers: Headers;
  text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into bodies of every shape
  body: any;
}

export interface WebhookReceiver {
  url: string;
  /** `host:port`, as in EGRESS_ALLOW. */
  allow: string;
  calls: ReceivedCall[];
  /** Calls to one path. */
  to(path: string): ReceivedCall[];
  /** Sets the response to further calls; default 204. A promise that never settles holds the caller. */
  answer: (call: ReceivedCall, path: string) => Response | Promise<Response>;
}

/** A receiver of webhooks on a free port. It ends after the tests of the file. */
export function webhookReceiver(): WebhookReceiver {
  const paths = new Map<ReceivedCall, string>();
  const receiver: WebhookReceiver = {
    url: '',
    allow: '',
    calls: [],
    to: (path) => receiver.calls.filter((call) => paths.get(call) === path),
    answer: () => new Response(null, { status: 204 }),
  };
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 120,
    async fetch(request) {
      const text = await request.text();
      const call = { headers: request.headers, text, body: parsed(text) };
      const { pathname } = new URL(request.url);
      paths.set(call, pathname);
      receiver.calls.push(call);
      return receiver.answer(call, pathname);
    },
  });
  receiver.allow = `127.0.0.1:${server.port}`;
  receiver.url = `http://${receiver.allow}`;
  afterAll(() => server.stop(true));
  return receiver;
}

/** Throws unless the public library for receivers accepts the call's signature. */
export function verifySignature(call: ReceivedCall, secret: string): unknown {
  const verifier = secret.startsWith('whsec_') ? new Webhook(secret) : new Webhook(secret, { format: 'raw' });
  return verifier.verify(call.text, Object.fromEntries(call.headers));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
