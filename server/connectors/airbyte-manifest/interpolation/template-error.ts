/** The template is wrong: it would fail for every record. */
export class TemplateError extends Error {}

/** What Python raises as a TypeError: an operation that values of these types do not have. */
export class MismatchError extends TemplateError {}
