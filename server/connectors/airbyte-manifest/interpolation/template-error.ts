/** The template is wrong: it would fail for every record. */
export class TemplateError extends Error {}
