import type { Duplex } from 'node:stream';
// @ts-expect-error -- the driver has no types of its own files
import { SFTP as SFTPUntyped } from 'ssh2/lib/protocol/SFTP.js';

type Request = (this: { _client: { _sock: Duplex } }, ...given: unknown[]) => void;
type Answer = unknown[];

/** Decides about a request: calls `send` for the server's answer, or never settles if the attempt is over. */
type Relay = (send: () => Promise<Answer>) => Promise<Answer>;

const NAMES = [
  'open',
  'close',
  'read',
  'write',
  'stat',
  'opendir',
  'readdir',
  'unlink',
  'rename',
  'mkdir',
  'ext_openssh_rename',
  'ext_openssh_fsync',
];

const relays = new WeakMap<Duplex, Relay>();

/** Lets every request of the SFTP session over this socket pass through `relay`. */
export function relayRequests(socket: Duplex, relay: Relay): void {
  relays.set(socket, relay);
}

const driver = (SFTPUntyped as { prototype: Record<string, Request> }).prototype;
for (const name of NAMES) {
  const original = driver[name]!;
  driver[name] = function (...given) {
    const relay = relays.get(this._client._sock);
    const done = given.at(-1);
    if (!relay || typeof done !== 'function') return original.apply(this, given);
    const send = () =>
      new Promise<Answer>((resolve) => {
        original.call(this, ...given.slice(0, -1), (...answer: Answer) => resolve(answer));
      });
    const pass = async () => done(...(await relay(send)));
    void pass();
  };
}
