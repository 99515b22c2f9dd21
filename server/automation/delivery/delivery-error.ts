/** Why an action failed. Users see the message: it contains no secrets and no internal addresses. */
export class DeliveryError extends Error {
  override name = 'DeliveryError';
  constructor(
    readonly code: string,
    message: string,
    readonly options: {
      /** Whether another attempt may succeed. */
      retryable: boolean;
      /** Earliest time of the next attempt; the current one does not count. */
      until?: Date;
      /** The action is no longer needed, so this is not a failure. */
      obsolete?: boolean;
    },
  ) {
    super(message);
  }
}

export const permanent = (code: string, message: string) => new DeliveryError(code, message, { retryable: false });
export const temporary = (code: string, message: string) => new DeliveryError(code, message, { retryable: true });
export const postponed = (until: Date, message: string) =>
  new DeliveryError('postponed', message, { retryable: true, until });
