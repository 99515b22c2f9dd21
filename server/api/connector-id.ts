/** Namespace of the version 5 UUIDs below; any fixed UUID would do. */
const NAMESPACE = 'b4f6c1de-2a57-4e0b-9c38-51d0a7e6f2c4';

/** The id of a catalogue entry: connectors live in the code, so it follows from type and name, the same everywhere. */
export const connectorId = (connector: { type: string; name: string }): string =>
  Bun.randomUUIDv5(`${connector.type}:${connector.name}`, NAMESPACE);
