/** Characters of an OpenAPI document from which the service drafts a definition. A test compares it with the service. */
export const MAX_OPENAPI_LENGTH = 8_000_000;

const count = (length: number) => length.toLocaleString('en');

/** Why no definition can be drafted from a document of this many characters, or null. */
export const tooLongToDraft = (length: number): string | null =>
  length <= MAX_OPENAPI_LENGTH
    ? null
    : `The document has ${count(length)} characters, and at most ${count(MAX_OPENAPI_LENGTH)} can be read. Remove paths and examples that are not needed.`;
