/** The severity at the beginning of the title is shown beside it. */
export const titleOf = ({ number, title, severity }: { number: number; title: string; severity: string }) =>
  `#${number} ${title.startsWith(`${severity}: `) ? title.slice(severity.length + 2) : title}`;
