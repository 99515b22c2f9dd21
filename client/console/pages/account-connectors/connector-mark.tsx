interface ConnectorMarkProps {
  connector: { display_name: string; icon_url: string | null };
}

/** The icon of a connector, or the first letters of its name. */
export const ConnectorMark = ({ connector }: ConnectorMarkProps) => (
  <span className="connector-mark" aria-hidden="true">
    {connector.icon_url === null ? (
      connector.display_name.slice(0, 2)
    ) : (
      <img src={connector.icon_url} alt="" width={24} height={24} />
    )}
  </span>
);
