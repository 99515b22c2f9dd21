/** How grave: a word, with its colour. */
export const Severity = ({ value }: { value: string }) => (
  <span className="severity" data-level={value}>
    {value}
  </span>
);
