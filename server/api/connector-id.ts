/** Namespace of the version 5 UUIDs: an arbitrary constant. */
const NAMESPACE = 'b4f6c1de-2a57-4e0b-9c38-51d0a7e6f2c4';

/** Id of a connector in the catalog. Derived from type and name, so that it is the same in every installation. */
export const connectorId = (connector: { type: string; name: string }): string =>
  Bun.randomUUIDv5(`${connector.type}:${connector.name}`, NAMESPACE);
