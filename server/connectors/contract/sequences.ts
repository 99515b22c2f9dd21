/** A sequence of a source, or a column that the source numbers by itself. */
export interface SourceSequence {
  namespace: string | null;
  name: string;
  /** The columns that take their values from it. None: statements call it by name. */
  columns: { namespace: string | null; table: string; column: string }[];
  /** The last value that it has given; null: none yet. */
  last: string | null;
  increment: string;
}

/** A sequence that the destination is to go on with. */
export interface WantedSequence {
  name: string;
  /** Columns of the destination. None: it is found by its name. */
  columns: { table: string; column: string }[];
  last: string | null;
  increment: string;
}

/** The destination's side of a wanted sequence. */
export interface AdvancedSequence {
  /** With its schema; null: the destination has none. */
  sequence: string | null;
  before: string | null;
  /** What it has given last, so that its next value is beyond those of both sides. */
  after: string | null;
  /** Creates the sequence where it is missing. */
  statement: string | null;
}
