interface RowsTableProps {
  /** Accessible name. */
  label: string;
  /** `detail`: below the name, such as a type. */
  columns: readonly { name: string; detail?: string | null }[];
  rows: readonly (readonly (string | null)[])[];
}

/** Rows of data as texts. Long values are cut, with the whole value in the tooltip. */
export const RowsTable = ({ label, columns, rows }: RowsTableProps) => (
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
  <div className="table-frame preview-frame" tabIndex={0} role="region" aria-label={label}>
    <table className="table compact">
      <thead>
        <tr>
          {columns.map(({ name, detail }) => (
            <th key={name} className="nowrap">
              {name}
              {detail && <div className="dimmed">{detail}</div>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells, row) => (
          // Rows have no identity but their position.
          // oxlint-disable-next-line react/no-array-index-key
          <tr key={row}>
            {columns.map(({ name }, at) => (
              <td key={name} className="mono preview-cell">
                <CellText value={cells[at] ?? null} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

export const CellText = ({ value }: { value: string | null }) =>
  value === null ? <span className="dimmed">NULL</span> : <span title={value}>{value}</span>;
