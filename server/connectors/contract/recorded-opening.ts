import type { Recorder } from './context.ts';

/**
 * Opens a connection and records that as one request.
 * @param shown what the network log says of the open connection
 */
export async function recordedOpening<Opened>(
  recorder: Recorder,
  { url, shown }: { url: string; shown(opened: Opened): string },
  open: () => Promise<Opened>,
): Promise<Opened> {
  const pending = recorder.start({ method: 'CONNECT', url, body: null, body_bytes: 0 });
  try {
    const opened = await open();
    pending.done({ status: 200, body: shown(opened) });
    return opened;
  } catch (error) {
    const { code = 'error', message } = error as Error & { code?: string };
    pending.failed(code, message);
    throw error;
  }
}
