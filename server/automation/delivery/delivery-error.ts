/** Why an action could not be carried out. The message is for users: no secrets, no addresses inside the network. */
export class DeliveryError extends Error {
  override name = 'DeliveryError';
  constructor(
    readonly code: string,
    message: string,
    readonly options: {
      /** Whether another attempt makes sense. */
      retryable: boolean;
      /** Not before this instant, and this attempt does not count. */
      until?: Date;
      /** The action is not needed any more: no failure. */
      pointless?: boolean;
    },
  ) {
    super(message);
  }
}

export const permanent = (code: string, message: string) => new DeliveryError(code, message, { retryable: false });
export const passing = (code: string, message: string) => new DeliveryError(code, message, { retryable: true });
export const postponed = (until: Date, message: string) =>
  new DeliveryError('postponed', message, { retryable: true, until });
